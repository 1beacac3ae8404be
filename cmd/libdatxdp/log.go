//go:build cgo && datprovider

package main

import (
	"context"
	"log/slog"
	"os"
)

// logVar asks for a log on standard error: debug, info, warn or error. A library says nothing by itself.
const logVar = "DATXDP_LOG"

// refusals is whether calls that are refused are told of. entry_logged.c does that, with what because has left.
var refusals bool

func init() {
	var level slog.Level
	if err := level.UnmarshalText([]byte(os.Getenv(logVar))); err != nil {
		slog.SetDefault(slog.New(slog.DiscardHandler))
		return
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	refusals = slog.Default().Enabled(context.Background(), slog.LevelDebug)
}

//go:build cgo && datprovider

package main

import (
	"context"
	"log/slog"
	"os"
)

// logVar is the environment variable that enables a log on standard error: debug, info, warn or error. Without it the
// library logs nothing.
const logVar = "DATXDP_LOG"

// refusals enables the log of refused calls. entry_logged.c writes the log, with the reason that storeReason has
// stored.
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

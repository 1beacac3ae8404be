//go:build cgo && datprovider

package main

import (
	"context"
	"log/slog"
	"os"
)

// logVar is the environment variable that enables a log on standard error. Its value is the level: debug, info, warn or
// error. Without the variable the library logs nothing.
const logVar = "DATXDP_LOG"

// refusals is true if refused calls are logged. storeReason then stores the reason, and table.c logs the call.
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

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// refusals is the slog.Handler of a server's adapter. It prints a line for a refused handshake of secure mode, and passes
// warnings about the adapter to the default handler. The server itself reports how rows end, so other records are dropped.
type refusals struct {
	slog.Handler
	lines *refusalLines
}

// refusalLines limits the lines, because strangers decide how many handshakes are refused, and a client repeats its
// request until it gives up.
type refusalLines struct {
	mu   sync.Mutex
	w    io.Writer
	last string
	next time.Time // when a line other than last may be printed
}

// A line is printed refusalPeriod after the last one at the earliest, and refusalRepeat if it is the same.
const (
	refusalPeriod = time.Second
	refusalRepeat = 30 * time.Second
)

func newRefusals(w io.Writer) *refusals {
	return &refusals{slog.Default().Handler(), &refusalLines{w: w}}
}

// Enabled implements slog.Handler.
func (*refusals) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (r *refusals) Handle(ctx context.Context, record slog.Record) error {
	switch record.Message {
	case "dat: handshake refused":
		r.lines.print(refusalText(record), record.Time)
		return nil
	case "dat: connection broke":
		return nil
	}
	return r.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (r *refusals) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &refusals{r.Handler.WithAttrs(attrs), r.lines}
}

// WithGroup implements slog.Handler.
func (r *refusals) WithGroup(name string) slog.Handler {
	return &refusals{r.Handler.WithGroup(name), r.lines}
}

// shortKey is how many characters of a public key a line shows.
const shortKey = 8

// refusalText says whom the adapter has refused, and what to do about it.
func refusalText(record slog.Record) string {
	v := map[string]string{}
	record.Attrs(func(a slog.Attr) bool {
		v[a.Key] = a.Value.String()
		return true
	})
	var who strings.Builder
	who.WriteString(v["peer"])
	if name := v["name"]; name != "" {
		fmt.Fprintf(&who, ", %s", name)
	}
	if key := v["key"]; len(key) > shortKey {
		fmt.Fprintf(&who, ", key %s…", key[:shortKey])
	}
	return fmt.Sprintf("datbench: refused %s: %s", &who, v["hint"])
}

func (l *refusalLines) print(line string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := l.next
	if line == l.last {
		due = due.Add(refusalRepeat - refusalPeriod)
	}
	if now.Before(due) {
		return
	}
	l.last, l.next = line, now.Add(refusalPeriod)
	fmt.Fprintln(l.w, line)
}

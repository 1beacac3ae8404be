package dat

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestSampler: however often a message is logged, only a bounded number of its lines is written each second. A later
// line has the number of dropped lines. Other messages are not affected.
func TestSampler(t *testing.T) {
	var out bytes.Buffer
	h := newSampler(slog.NewTextHandler(&out, nil)).WithAttrs([]slog.Attr{slog.Int("ia", 1)})
	now := time.Unix(1000, 0)
	write := func(message string) {
		if err := h.Handle(context.Background(), slog.NewRecord(now, slog.LevelInfo, message, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for range 10_000 {
		write("flood")
	}
	write("other")
	if got := strings.Count(out.String(), "msg=flood"); got != sampleBurst {
		t.Errorf("%d lines of the flood, want %d", got, sampleBurst)
	}
	if !strings.Contains(out.String(), "msg=other") {
		t.Error("another message was left out")
	}
	now = now.Add(sampleTime + 1)
	write("flood")
	if want := "left_out=9900"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in the next line", want)
	}
}

package dat

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
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

// stuckHandler is a slog.Handler that waits until it is released, and counts the records.
type stuckHandler struct {
	slog.Handler
	release chan struct{}
	handled chan string
}

func (h *stuckHandler) Handle(_ context.Context, r slog.Record) error {
	<-h.release
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	h.handled <- text
	return nil
}

// TestDetached: a handler that does not return stops nobody. Records wait for it, in their order, as many as are bounded;
// the next one that finds room has the number of dropped ones.
func TestDetached(t *testing.T) {
	stuck := &stuckHandler{Handler: slog.DiscardHandler, release: make(chan struct{}), handled: make(chan string, 2*maxQueuedRecords)}
	h := newSampler(newDetached(stuck))
	write := func(message string) {
		if err := h.Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelInfo, message, 0)); err != nil {
			t.Fatal(err)
		}
	}
	const more = 10
	for i := range maxQueuedRecords + 1 + more { // the handler has one, or has not begun
		write([]string{"even", "odd"}[i%2])
	}
	close(stuck.release)
	got := []string{<-stuck.handled, <-stuck.handled, <-stuck.handled}
	if want := []string{"even", "odd", "even"}; !slices.Equal(got, want) {
		t.Errorf("handled %q first, want %q", got, want)
	}
	for range maxQueuedRecords - len(got) {
		<-stuck.handled
	}
	write("even") // at most one other record waits
	for limit := time.After(patience); ; {
		select {
		case line := <-stuck.handled:
			if strings.Contains(line, "left_out") {
				return
			}
		case <-limit:
			t.Fatal("no line has the number of dropped records")
		}
	}
}

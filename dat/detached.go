package dat

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// detached is a slog.Handler that does not wait for the handler behind it. A goroutine passes the records on, in their
// order, and ends when none is left. The worker of secure mode logs through it: a log that nobody reads, such as a full
// pipe, must not stop handshakes.
type detached struct {
	slog.Handler
	queue *recordQueue
}

// recordQueue has the records that wait for the handlers of a detached and of those derived from it.
type recordQueue struct {
	mu      sync.Mutex
	waiting []queuedRecord
	running bool // the goroutine exists
}

type queuedRecord struct {
	handler slog.Handler
	record  slog.Record
}

// maxQueuedRecords is the number of records that wait at most.
const maxQueuedRecords = 128

var errRecordQueueFull = errors.New("dat: the log handler does not keep up")

func newDetached(h slog.Handler) *detached { return &detached{h, new(recordQueue)} }

// Handle implements slog.Handler. It returns errRecordQueueFull if it drops the record.
func (d *detached) Handle(_ context.Context, r slog.Record) error {
	q := d.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxQueuedRecords {
		return errRecordQueueFull
	}
	q.waiting = append(q.waiting, queuedRecord{d.Handler, r.Clone()})
	if !q.running {
		q.running = true
		go q.run()
	}
	return nil
}

// run passes the records on.
func (q *recordQueue) run() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.waiting, q.running = nil, false
			q.mu.Unlock()
			return
		}
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		_ = next.handler.Handle(context.Background(), next.record) // as slog.Logger, which ignores errors of handlers
	}
}

// WithAttrs implements slog.Handler.
func (d *detached) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &detached{d.Handler.WithAttrs(attrs), d.queue}
}

// WithGroup implements slog.Handler.
func (d *detached) WithGroup(name string) slog.Handler {
	return &detached{d.Handler.WithGroup(name), d.queue}
}

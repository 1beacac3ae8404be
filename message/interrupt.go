package message

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// interrupter ends the blocked calls of one direction of a net.Conn when a context ends: it sets a deadline in the past.
// It stays registered with the context of the last call, because most programs pass the same context to many calls;
// then a call costs no registration.
type interrupter struct {
	setDeadline func(time.Time) error

	mu   sync.Mutex
	done <-chan struct{} // identifies the context with which it is registered; nil for none
	stop func() bool     // ends the registration
	past bool            // the deadline is in the past because that context has ended
}

// begin prepares a call that ends with the context.
func (i *interrupter) begin(ctx context.Context) error {
	done := ctx.Done()
	i.mu.Lock()
	if done != i.done {
		i.unregister()
		if i.done = done; done != nil {
			i.stop = context.AfterFunc(ctx, func() { i.interrupt(done) })
		}
	}
	i.mu.Unlock()
	return ctx.Err()
}

// interrupt ends the blocked call.
func (i *interrupter) interrupt(done <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if done == i.done {
		i.past = true
		_ = i.setDeadline(time.Unix(1, 0))
	}
}

// release ends the registration.
func (i *interrupter) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unregister()
}

func (i *interrupter) unregister() {
	if i.stop != nil {
		i.stop()
	}
	if i.past {
		_ = i.setDeadline(time.Time{})
	}
	i.done, i.stop, i.past = nil, nil, false
}

// cause returns the context's error if the timeout err is due to the context's end.
func cause(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

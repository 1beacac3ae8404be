package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// takenError is a server that another client has.
type takenError struct {
	s station
	// by is what the server says of that.
	by string
}

func (e *takenError) Error() string { return fmt.Sprintf("%v is %s", e.s.Peer, e.by) }

// waited is what to do about a server that stayed taken.
func (e *takenError) waited(d time.Duration) error {
	return fmt.Errorf("%w, after waiting for %s: try again later, or wait longer as with --wait 1m", e, d)
}

// await calls try until the server is not taken, no longer than wait. It tells of each wait by note.
func await(ctx context.Context, wait time.Duration, note func(string), try func() error) error {
	for end := time.Now().Add(wait); ; {
		err := try()
		var taken *takenError
		if !errors.As(err, &taken) {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return taken.waited(wait)
		}
		note(fmt.Sprintf("waiting %s more: %v", left.Round(time.Second), taken))
		select {
		case <-time.After(min(waitEvery, left)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

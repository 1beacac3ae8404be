package message

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// TestClientCutOff: a call whose context ends in the middle of its request returns the context's error. Then the client says
// that it is broken, in later calls too, and after Close that it is closed.
func TestClientCutOff(t *testing.T) {
	a, b := net.Pipe()
	c := NewClient(a)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = b.Read(make([]byte, 1))
		cancel()
	}()
	if _, err := c.Call(ctx, nil, make([]byte, 1000)); !errors.Is(err, context.Canceled) {
		t.Errorf("the call that was cut off: %v", err)
	}
	select {
	case <-c.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the client is not done")
	}
	_, err := c.Call(t.Context(), nil, nil)
	for _, err := range []error{err, c.Err()} {
		if !errors.Is(err, ErrBroken) || errors.Is(err, context.Canceled) {
			t.Errorf("later: %v", err)
		}
	}
	if err := errors.Join(c.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if err := c.Err(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestClosedClient: after Close, a call and Err return an error that wraps net.ErrClosed.
func TestClosedClient(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := NewClient(a)
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	_ = c.Close()
	<-c.Done()
	_, err := c.Call(t.Context(), nil, nil)
	for _, err := range []error{err, c.Err()} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

package plan

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestWithin: a wait ends when its function returns, or at its limit.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := Within(time.Second, "it", func() error { return io.EOF }); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want what it returns", err)
		}
		err := Within(time.Second, "the thing", func() error { time.Sleep(time.Minute); return nil })
		if err == nil || err.Error() != "the thing takes longer than 1s" {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute) // until the abandoned function has returned
	})
}

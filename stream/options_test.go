package stream

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// TestOptions: the options that libraries ask for succeed until Close.
func TestOptions(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, _ := newPair(t, a, b)
	for closed := range 2 {
		for _, err := range []error{x.SetNoDelay(true), x.SetKeepAlive(true), x.SetKeepAlivePeriod(time.Minute)} {
			if closed == 0 && err != nil || closed == 1 && !errors.Is(err, net.ErrClosed) {
				t.Errorf("Close was called %d times: %v", closed, err)
			}
		}
		_ = x.Close()
	}
}

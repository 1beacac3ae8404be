package labtest

import (
	"net"
	"testing"
	"time"
)

// While RTNL is held, a request for the list of interfaces waits.
func TestHoldRTNL(t *testing.T) {
	release := HoldRTNL(t)
	listed := make(chan error, 1)
	go func() {
		_, err := net.Interfaces()
		listed <- err
	}()
	select {
	case err := <-listed:
		t.Errorf("the interfaces were listed while the lock was held: %v", err)
	case <-time.After(20 * time.Millisecond): // longer only if the lock is held
	}
	release()
	if err := <-listed; err != nil {
		t.Error(err)
	}
}

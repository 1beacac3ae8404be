package usage

import (
	"runtime"
	"testing"
	"time"
)

// TestShare: a sleeping thread has almost no share of a core. The zero Usage has all of it.
func TestShare(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	u := Start()
	time.Sleep(20 * time.Millisecond)
	if asleep := u.Share(); asleep > 0.5 || asleep < 0 {
		t.Errorf("asleep: got %.2f", asleep)
	}
	if unknown := (Usage{}).Share(); unknown != 1 {
		t.Errorf("zero value: got %g", unknown)
	}
}

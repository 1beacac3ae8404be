package park

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slept returns the virtual time that f takes.
func slept(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func wantYields(t *testing.T, f func()) {
	t.Helper()
	for i := range patientYields {
		if d := slept(f); d != 0 {
			t.Fatalf("call %d sleeps for %v", i, d)
		}
	}
}

// Wait must yield first, and then sleep for growing times.
func TestPatienceWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Patience
		for range 2 {
			wantYields(t, p.Wait)
			for want := ShortestSleep; want < 100*longestSleep; want *= 2 {
				if d := slept(p.Wait); d != min(want, longestSleep) {
					t.Errorf("it sleeps for %v, want %v", d, min(want, longestSleep))
				}
			}
			p.Reset()
		}
	})
}

// Nap must yield, and sleep a short time once in a while.
func TestPatienceNap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Patience
		for range 3 {
			wantYields(t, p.Nap)
			if d := slept(p.Nap); d != ShortestSleep {
				t.Errorf("it sleeps for %v, want %v", d, ShortestSleep)
			}
		}
	})
}

// Goroutines that share a Patience must all sleep in the end.
func TestPatienceShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Patience
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 2 * patientYields {
					p.Wait()
				}
			})
		}
		if d := slept(all.Wait); d < 64*longestSleep {
			t.Errorf("they sleep for %v", d)
		}
	})
}

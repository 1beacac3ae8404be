package progress

import (
	"testing"
	"testing/synctest"
	"time"
)

// Patience must yield first, and then sleep for growing times.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Patience
		began := time.Now()
		for range patientYields {
			p.Wait()
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("it sleeps for %v at first", d)
		}
		for want := shortestSleep; want < 100*longestSleep; want *= 2 {
			began = time.Now()
			if p.Wait(); time.Since(began) != min(want, longestSleep) {
				t.Errorf("it sleeps for %v, want %v", time.Since(began), min(want, longestSleep))
			}
		}
	})
}

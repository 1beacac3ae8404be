package udplink

import (
	"sync"
	"testing"
	"time"
)

func TestWakeBeforeWaitIsNotLost(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		o.Port = freePort(t, host1)
		l := mustOpen(t, host1, o)
		for range 3 {
			l.Wake()
			l.Wait(-1)
		}
		start := time.Now()
		for time.Since(start) < 20*time.Millisecond {
			l.Wait(20 * time.Millisecond) // may return early, but must return
		}
	})
}

func TestCloseReleasesEveryWait(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		o.Port = freePort(t, host1)
		l, err := Open(host1, o)
		if err != nil {
			t.Fatal(err)
		}
		var all, entered sync.WaitGroup
		for range 4 {
			entered.Add(1)
			all.Go(func() { entered.Done(); l.Wait(-1) })
		}
		entered.Wait()
		for range 2 {
			if err := l.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		all.Wait()
		l.Wait(-1)
		l.Wake()
	})
}

func TestWakeRacesWait(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		o.Port = freePort(t, host1)
		l := mustOpen(t, host1, o)
		const rounds = 2000
		turn := make(chan struct{})
		go func() {
			for range rounds {
				l.Wake()
				<-turn
			}
		}()
		for range rounds {
			l.Wait(-1)
			turn <- struct{}{}
		}
	})
}

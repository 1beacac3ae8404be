package progress

import (
	"os"
	"runtime"
	"sync"
	"testing"
)

// TestWaiterServesNetwork: while a goroutine spins in Wait on the only processor, the scheduler still finds network
// events. The test counts the polls until such an event is found. If the goroutine did not help the scheduler, the
// runtime's monitor thread would find the event after 10 ms, that is, after thousands of polls.
func TestWaiterServesNetwork(t *testing.T) {
	for name, known := range map[string]bool{"the poller is known": true, "the poller is unknown": false} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			x := newTraffic()
			x.group.network.open()
			defer x.group.network.close()
			if x.group.network.epoll < 0 {
				t.Fatal("the descriptor of the network poller was not found")
			}
			if !known {
				x.group.network.epoll = -1
			}
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			defer out.Close()
			done := make(chan struct{})
			var all sync.WaitGroup
			all.Go(func() { x.group.Wait(alwaysRaised(), Forever, done) })
			began := make(chan struct{})
			all.Go(func() { // writes a byte when the reader is blocked
				for range began {
					if _, err := out.Write(make([]byte, 1)); err != nil {
						t.Error(err)
					}
				}
			})
			var most int64
			for range 20 {
				began <- struct{}{}
				was := x.count.Load()
				if _, err := in.Read(make([]byte, 1)); err != nil {
					t.Error(err)
				}
				most = max(most, x.count.Load()-was)
			}
			close(began)
			close(done)
			all.Wait()
			if most > 1000 {
				t.Errorf("%d polls until the byte was read", most)
			}
		})
	}
}

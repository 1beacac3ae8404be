package dat

import (
	"context"
	"sync"
	"testing"
)

// BenchmarkChannelHop measures the round trip of a 64-byte message over AF_XDP between two typical Go services. In each
// service, one goroutine waits for messages and passes them over a channel to another goroutine, which posts the next
// message.
func BenchmarkChannelHop(b *testing.B) {
	n := newXDP(b)
	hx, hy := newHost(b, n, 0, Options{}), newHost(b, n, 1, Options{})
	hy.listen(testQual, 8)
	x, y := pair(hx, hy, nil)
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	came := map[*point]chan struct{}{x: make(chan struct{}), y: make(chan struct{})}
	for p, c := range came {
		ok(b, p.PostRecv(p.seg(64, 64), 1, 0))
		all.Go(func() {
			for _, err := range p.recv.Events(ctx) {
				if err != nil {
					return
				}
				select {
				case c <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	answer := func(p *point) {
		ok(b, p.PostRecv(p.seg(64, 64), 1, 0))
		ok(b, p.PostSend(p.seg(0, 64), 2, CompletionSuppress))
	}
	all.Go(func() {
		for {
			select {
			case <-came[y]:
				answer(y)
			case <-ctx.Done():
				return
			}
		}
	})
	for b.Loop() {
		answer(x)
		<-came[x]
	}
}

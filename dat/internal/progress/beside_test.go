package progress

import (
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// traffic is an engine and its link in real time. Packets arrive all the time.
type traffic struct {
	Driver
	group Group
	token wire.Token
	count atomic.Int64 // polls
}

func newTraffic() *traffic {
	x := &traffic{}
	x.Init(x, &x.token, x)
	x.group.Add(&x.Driver)
	return x
}

// Poll takes about as long as an empty poll of a wire.Engine. Every 40th poll finds a packet.
func (x *traffic) Poll(now wire.Time) bool {
	for Now().Sub(now) < 200*time.Nanosecond {
	}
	return x.count.Add(1)%40 == 0
}

func (x *traffic) Next() wire.Time                     { return Forever }
func (x *traffic) Kick(*wire.Conn) (poll, active bool) { return true, true }
func (x *traffic) Ring(*wire.Conn)                     {}
func (x *traffic) Connections() int                    { return 0 }
func (x *traffic) Close()                              {}
func (x *traffic) Wait(time.Duration)                  {}
func (x *traffic) Wake()                               {}

// alwaysRaised returns a Waiting that never becomes ready, and whose waiter does not sleep.
func alwaysRaised() Waiting { return &counting{last: math.MaxInt32, start: func(int32) {}} }

// BenchmarkBesideWaiters measures how goroutines that spin in Wait slow down other work of the same program. Each of
// these goroutines has its own adapter. The benchmark measures round trips of one byte over TCP on the loopback
// interface, with both ends in this process. It also measures the intervals of a time.Ticker of one millisecond.
func BenchmarkBesideWaiters(b *testing.B) {
	for _, procs := range []int{1, 2, 4} {
		for waiters := range 3 {
			b.Run(fmt.Sprintf("procs=%d/waiters=%d", procs, waiters), func(b *testing.B) { besideWaiters(b, procs, waiters) })
		}
	}
}

func besideWaiters(b *testing.B, procs, waiters int) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	done := make(chan struct{})
	var all sync.WaitGroup
	for range waiters {
		x := newTraffic()
		x.group.network.open()
		defer x.group.network.close()
		all.Go(func() { x.group.Wait(alwaysRaised(), Forever, done) })
	}
	client := dialEcho(b, &all)
	var ticks, trips []time.Duration
	all.Go(func() { ticks = tick(done) })
	buf := make([]byte, 1)
	for b.Loop() {
		start := time.Now()
		if _, err := client.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(client, buf); err != nil {
			b.Fatal(err)
		}
		trips = append(trips, time.Since(start))
	}
	close(done)
	_ = client.Close()
	all.Wait()
	reportTimes(b, "tcp", trips)
	reportTimes(b, "tick", ticks)
}

// dialEcho returns a connection to a goroutine that returns what it gets.
func dialEcho(b *testing.B, all *sync.WaitGroup) net.Conn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	all.Go(func() {
		defer server.Close()
		buf := make([]byte, 1)
		for {
			if _, err := server.Read(buf); err != nil {
				return
			}
			if _, err := server.Write(buf); err != nil {
				return
			}
		}
	})
	return client
}

// tick returns the intervals of a ticker until done is closed.
func tick(done <-chan struct{}) (intervals []time.Duration) {
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for last := time.Now(); ; {
		select {
		case <-t.C:
			now := time.Now()
			intervals = append(intervals, now.Sub(last))
			last = now
		case <-done:
			return intervals
		}
	}
}

func reportTimes(b *testing.B, what string, times []time.Duration) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(times[(len(times)-1)*p/100])/1e3, fmt.Sprintf("%s-p%d-µs", what, p))
	}
}

package park

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inNetworkPoller makes Sleep use the network poller until the end of the test.
func inNetworkPoller(t testing.TB) {
	procs := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
}

// newSleeper makes a Sleeper with its eventfd, and a pipe whose reading end is watched.
func newSleeper(t testing.TB) (b *Sleeper, eventfd int, in, out *os.File) {
	eventfd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = Open(eventfd); err != nil {
		t.Fatal(err)
	}
	if in, out, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		_ = unix.Close(eventfd)
		_ = in.Close()
		_ = out.Close()
	})
	return b, eventfd, in, out
}

func ring(t testing.TB, fd int) {
	if _, err := unix.Write(fd, binary.NativeEndian.AppendUint64(nil, 1)); err != nil {
		t.Error(err)
	}
}

// A sleep ends when the descriptor is readable, the eventfd is written, or the time has passed, whether that happens
// before the wait or during it.
func TestWait(t *testing.T) {
	const never = 20 * time.Second
	for name, c := range map[string]struct {
		limit time.Duration
		want  Cause
		cause func(t *testing.T, eventfd int, out *os.File)
	}{
		"data":    {never, Readable, func(t *testing.T, _ int, out *os.File) { ring(t, int(out.Fd())) }},
		"event":   {-1, Rung, func(t *testing.T, eventfd int, _ *os.File) { ring(t, eventfd) }},
		"time":    {time.Millisecond, 0, func(*testing.T, int, *os.File) {}},
		"no time": {0, 0, func(*testing.T, int, *os.File) {}},
	} {
		for when, during := range map[string]bool{"before": false, "during": true} {
			run := func(t *testing.T) {
				b, eventfd, in, out := newSleeper(t)
				began := time.Now()
				var causing sync.WaitGroup
				var over atomic.Bool
				if during {
					causing.Go(func() {
						for !b.inUse.Load() && holders.Load() == 0 && !over.Load() {
							runtime.Gosched()
						}
						c.cause(t, eventfd, out)
					})
				} else {
					c.cause(t, eventfd, out)
				}
				if cause := b.Sleep(int(in.Fd()), c.limit); cause != c.want {
					t.Errorf("cause %b, want %b", cause, c.want)
				}
				over.Store(true)
				if took := time.Since(began); took >= never || name == "time" && took < c.limit {
					t.Errorf("Sleep returned after %v", took)
				}
				causing.Wait()
			}
			t.Run(name+" "+when+"/network poller", func(t *testing.T) {
				inNetworkPoller(t)
				run(t)
			})
			t.Run(name+" "+when+"/ppoll", func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
				run(t)
			})
		}
	}
}

// A descriptor that is closed and replaced is watched again.
func TestReplaced(t *testing.T) {
	inNetworkPoller(t)
	b, _, in, _ := newSleeper(t)
	b.Sleep(int(in.Fd()), time.Nanosecond)
	other, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	defer out.Close()
	if err := unix.Dup3(int(other.Fd()), int(in.Fd()), unix.O_CLOEXEC); err != nil { // closes what the number named
		t.Fatal(err)
	}
	ring(t, int(out.Fd()))
	began := time.Now()
	if b.Sleep(int(in.Fd()), 20*time.Second); time.Since(began) > 10*time.Second {
		t.Error("the data was not seen")
	}
}

// While one goroutine sleeps, another one can. The sleeper holds no processor of the scheduler: on the only one, another
// goroutine runs immediately.
func TestOneSleeper(t *testing.T) {
	inNetworkPoller(t)
	b, eventfd, in, _ := newSleeper(t)
	var sleeper sync.WaitGroup
	sleeper.Go(func() { b.Sleep(int(in.Fd()), -1) })
	for !b.inUse.Load() {
		runtime.Gosched()
	}
	if cause := b.Sleep(int(in.Fd()), time.Millisecond); cause != 0 {
		t.Errorf("the sleep of a second goroutine has cause %b", cause)
	}
	ring(t, eventfd)
	sleeper.Wait()
}

// While no goroutine sleeps, data on the descriptor wakes no thread of the network poller, however the last sleep ended.
func TestDisarmed(t *testing.T) {
	for _, cause := range []string{"event", "time", "data"} {
		t.Run(cause, func(t *testing.T) {
			inNetworkPoller(t)
			s, eventfd, in, out := newSleeper(t)
			limit := time.Duration(-1)
			switch cause {
			case "event":
				ring(t, eventfd)
			case "time":
				limit = time.Nanosecond
			case "data":
				ring(t, int(out.Fd()))
			}
			s.Sleep(int(in.Fd()), limit)
			ring(t, int(out.Fd()))
			events := make([]unix.EpollEvent, 3)
			n, err := unix.EpollWait(s.epoll, events, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events[:n] {
				if int(e.Fd) == int(in.Fd()) {
					t.Error("the data wakes the network poller")
				}
			}
		})
	}
}

// A sleep allocates nothing.
func TestNoAllocation(t *testing.T) {
	b, _, in, _ := newSleeper(t)
	fd := int(in.Fd())
	if n := testing.AllocsPerRun(100, func() { b.Sleep(fd, time.Microsecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkBesideSleeper measures round trips of one byte over a pair of pipes of this process, which the network poller
// watches, beside a goroutine that sleeps 100 µs at a time.
func BenchmarkBesideSleeper(b *testing.B) {
	for _, procs := range []int{1, 2} {
		for _, c := range []struct {
			name string
			wait func(bench *Sleeper, fd int, d time.Duration)
		}{
			{"none", nil},
			{"ppoll", func(_ *Sleeper, fd int, d time.Duration) {
				limit := unix.NsecToTimespec(int64(d))
				_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, &limit, nil)
			}},
			{"park", func(bench *Sleeper, fd int, d time.Duration) { bench.Sleep(fd, d) }},
		} {
			b.Run(fmt.Sprintf("procs=%d/%s", procs, c.name), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				bench, _, in, _ := newSleeper(b)
				var over atomic.Bool
				var sleeper sync.WaitGroup
				if c.wait != nil {
					fd := int(in.Fd())
					_ = unix.SetNonblock(fd, true)
					sleeper.Go(func() {
						for !over.Load() {
							c.wait(bench, fd, 100*time.Microsecond)
						}
					})
				}
				roundTrips(b)
				over.Store(true)
				sleeper.Wait()
			})
		}
	}
}

// roundTrips measures round trips over a pair of pipes.
func roundTrips(b *testing.B) {
	in, serverOut, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	serverIn, out, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	var server sync.WaitGroup
	server.Go(func() {
		_, _ = io.Copy(struct{ io.Writer }{serverOut}, struct{ io.Reader }{serverIn}) // until the pipe is closed
	})
	var trips []time.Duration
	buf := make([]byte, 1)
	for b.Loop() {
		start := time.Now()
		if _, err := out.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := in.Read(buf); err != nil {
			b.Fatal(err)
		}
		trips = append(trips, time.Since(start))
	}
	_ = out.Close()
	server.Wait()
	for _, f := range []*os.File{in, serverOut, serverIn} {
		_ = f.Close()
	}
	slices.Sort(trips)
	b.ReportMetric(float64(trips[len(trips)/2])/1e3, "p50-µs")
	b.ReportMetric(float64(trips[len(trips)*99/100])/1e3, "p99-µs")
}

package dat

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// A load is the busy loops beside a measurement, each a process of its own.
type load []child

func (l load) stop() {
	for _, c := range l {
		c.kill()
	}
}

// computed returns the processor time of all loops since they began.
func (l load) computed() (sum time.Duration) {
	for _, c := range l {
		sum += scheduleOf(c.Process.Pid).run
	}
	return sum
}

// cost is what a service takes from its neighbours while it makes requests at a given rate.
type cost struct {
	cpu   time.Duration // processor time of both ends for a request
	loops time.Duration // time in which the busy loops do the work of a second on every core; 0 without loops
}

// pacedInterval is the time between two requests of a service that is neither idle nor in a hurry.
const pacedInterval = time.Millisecond

// paced makes n round trips on e, one each pacedInterval, or immediately if the last one took longer.
func paced(t testing.TB, s *services, e exchange, beside load, n int) cost {
	both := func() time.Duration { return scheduleOf(os.Getpid()).run + scheduleOf(s.peer.Process.Pid).run }
	start, before, computed := time.Now(), both(), beside.computed()
	for i := range n {
		time.Sleep(time.Until(start.Add(time.Duration(i) * pacedInterval)))
		ok(t, errors.Join(e.send(), e.receive()))
	}
	c := cost{cpu: (both() - before) / time.Duration(n)}
	if got := beside.computed() - computed; got > 0 {
		c.loops = time.Duration(float64(time.Since(start)) / float64(got) * float64(runtime.NumCPU()) * float64(time.Second))
	}
	return c
}

// BenchmarkNeighbours makes 1000 requests of 64 bytes a second between two processes, over AF_XDP and over UDP sockets
// in the modes that sleep, and over TCP of package net in the same run. It reports the processor time of both ends for
// a request, and for each end what BenchmarkBusyHosts reports. Beside busy loops it also reports the part of all cores
// that the loops have.
func BenchmarkNeighbours(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, transport := range []string{"xdp", "udp"} {
		for _, mode := range []Progress{ProgressAdaptive, ProgressInterrupts} {
			b.Run(transport+"/"+mode.String(), func(b *testing.B) {
				s := newServicesOver(b, serviceNet{newXDP(b).(xdpNet), transport == "udp"}, 2, mode)
				for _, loops := range []int{0, 4} {
					for _, over := range []string{"dat", "net"} {
						e := s.dial(b, over, false, 1)[0]
						b.Run(fmt.Sprintf("busy=%d/%s", loops, over), func(b *testing.B) {
							beside := startLoad(b, loops)
							defer beside.stop()
							paced(b, s, e, beside, 100) // learns whether polling pays
							b.ResetTimer()
							client, server := scheduleOf(os.Getpid()), scheduleOf(s.peer.Process.Pid)
							c := paced(b, s, e, beside, b.N)
							scheduleOf(os.Getpid()).report(b, client, b.N, "client")
							scheduleOf(s.peer.Process.Pid).report(b, server, b.N, "server")
							b.ReportMetric(float64(c.cpu)/1e3, "cpu-µs/op")
							if c.loops > 0 {
								b.ReportMetric(100*float64(time.Second)/float64(c.loops), "%loops")
							}
						})
						e.close()
					}
				}
			})
		}
	}
}

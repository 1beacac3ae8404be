package dat

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func init() { roles["load"] = beLoad }

// beLoad is a process that computes on one core until it is killed.
func beLoad() error {
	fmt.Println("computing")
	for { //nolint:staticcheck // SA5002: it must use up its processor
	}
}

// startLoad starts n busy loops at normal priority.
func startLoad(b testing.TB, n int) load {
	b.Setenv("GOMAXPROCS", "1")
	all := make(load, n)
	for i := range all {
		all[i] = startChild(b, "load", "", 0, 0, func(start func() error) error { return start() })
		all[i].says(b)
	}
	return all
}

// schedule is what the kernel has counted for the threads of a process since they began.
type schedule struct {
	run, wait              time.Duration // on a core; runnable but without a core (run delay)
	voluntary, involuntary int           // context switches: the thread slept; it lost its core
}

// scheduleOf reads schedstat and status of all threads of a process.
func scheduleOf(pid int) (s schedule) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, _ := os.ReadDir(dir)
	for _, task := range tasks {
		var run, wait time.Duration
		stat, _ := os.ReadFile(dir + "/" + task.Name() + "/schedstat")
		_, _ = fmt.Sscan(string(stat), &run, &wait) // a thread that has just ended counts nothing
		s.run, s.wait = s.run+run, s.wait+wait
		status, _ := os.ReadFile(dir + "/" + task.Name() + "/status")
		for line := range strings.Lines(string(status)) {
			var n int
			if _, err := fmt.Sscanf(line, "voluntary_ctxt_switches: %d", &n); err == nil {
				s.voluntary += n
			}
			if _, err := fmt.Sscanf(line, "nonvoluntary_ctxt_switches: %d", &n); err == nil {
				s.involuntary += n
			}
		}
	}
	return s
}

// report reports the change since an earlier schedule, for each of n requests.
func (s schedule) report(b *testing.B, since schedule, n int, end string) {
	each := func(v float64, unit string) { b.ReportMetric(v/float64(n), end+"-"+unit) }
	each(float64(s.run-since.run)/1e3, "cpu-µs/op")
	each(float64(s.wait-since.wait)/1e3, "delay-µs/op")
	each(float64(s.voluntary-since.voluntary), "slept/op")
	each(float64(s.involuntary-since.involuntary), "lost/op")
}

// roundTrips makes n round trips on e, and returns their times in order of length. If hop is true, another goroutine
// receives.
func roundTrips(t testing.TB, e exchange, hop bool, n int) []time.Duration {
	all := make([]time.Duration, 0, n)
	receive := e.receive
	if hop {
		came := make(chan struct{})
		go hand(e, came, n)
		receive = func() error { <-came; return nil }
	}
	for range n {
		start := time.Now()
		if err := errors.Join(e.send(), receive()); err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Since(start))
	}
	slices.SortFunc(all, cmp.Compare)
	return all
}

// timed makes b.N round trips on e, and reports their times and the schedules of both ends.
func timed(b *testing.B, s *services, e exchange, hop bool) {
	client, server := scheduleOf(os.Getpid()), scheduleOf(s.peer.Process.Pid)
	all := roundTrips(b, e, hop, b.N)
	scheduleOf(os.Getpid()).report(b, client, b.N, "client")
	scheduleOf(s.peer.Process.Pid).report(b, server, b.N, "server")
	b.ReportMetric(float64(all[len(all)/2])/1e3, "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100])/1e3, "p99-µs")
}

// BenchmarkBusyHosts measures round trips of 64 bytes between two processes beside busy loops, over AF_XDP and over UDP
// sockets in each mode of progress, and over TCP of package net in the same run. At each end either one goroutine does
// all, or one goroutine receives and another one sends ("hop"). It reports p50 and p99 and, for each end and request:
// processor time, run delay, and how often a thread slept or lost its core.
func BenchmarkBusyHosts(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, udp := range []bool{false, true} {
		for mode := range Progress(len(progressNames)) {
			name := "xdp"
			if udp {
				name = "udp"
			}
			b.Run(name+"/"+mode.String(), func(b *testing.B) {
				s := newServicesOver(b, serviceNet{newXDP(b).(xdpNet), udp}, 2, mode)
				for _, loops := range []int{0, 2, 4, 8} {
					for _, hop := range []bool{false, true} {
						for _, transport := range []string{"dat", "net"} {
							e := s.dial(b, transport, hop, 1)[0]
							b.Run(fmt.Sprintf("busy=%d/hop=%v/%s", loops, hop, transport), func(b *testing.B) {
								defer startLoad(b, loops).stop()
								b.ResetTimer()
								timed(b, s, e, hop)
							})
							e.close()
						}
					}
					for _, callers := range []int{16, 64} {
						for _, transport := range []string{"dat", "net"} {
							all := s.dial(b, transport, false, callers)
							b.Run(fmt.Sprintf("busy=%d/callers=%d/%s", loops, callers, transport), func(b *testing.B) {
								defer startLoad(b, loops).stop()
								b.ResetTimer()
								requests(b, all, false)
							})
							for _, e := range all {
								e.close()
							}
						}
					}
				}
			})
		}
	}
}

//go:build !race

package dat

import (
	"syscall"
	"testing"
	"time"
)

// TestServerIsStopped stops a server process for 1 s and for 5 s while many clients are connected and send messages. No
// connection breaks, and all messages arrive soon after the process continues.
func TestServerIsStopped(t *testing.T) {
	u := newUDP(t).(udp)
	server := startChild(t, "crowd", "udp:"+u.addr(1).String(), int(u.port), 0, func(f func() error) error { return f() })
	if said := server.says(t); said != "listening" {
		t.Fatal(said)
	}
	h := newHost(t, u, 0, Options{})
	c := newCallers(t, h, u)
	c.run(t, time.Second)
	for _, stop := range []time.Duration{time.Second, 5 * time.Second} {
		before := must(h.ia.Stats())(t)
		ok(t, syscall.Kill(server.Process.Pid, syscall.SIGSTOP))
		c.run(t, stop)
		ok(t, syscall.Kill(server.Process.Pid, syscall.SIGCONT))
		start := time.Now()
		for c.done < c.sent && time.Since(start) < patience {
			c.reap(10 * time.Millisecond)
		}
		caught := time.Since(start)
		c.run(t, 2*time.Second)
		after := must(h.ia.Stats())(t)
		t.Logf("stop of %v: %d of %d connections broken, %d resends, %d packets in all, caught up in %v", stop, c.broken, len(c.eps),
			after.Retransmits-before.Retransmits, after.TxPackets-before.TxPackets, caught)
		if c.broken > 0 || caught >= patience {
			t.Errorf("stop of %v: %d connections broken, %d messages of %d not done", stop, c.broken, c.sent-c.done, c.sent)
		}
	}
}

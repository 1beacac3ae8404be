package wire

import (
	"crypto/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// The consumers end the connection while jobs of the handshake run. Nothing may be left, and the secrets must be
// overwritten.
func TestSecureEndsWhileJobsRun(t *testing.T) {
	for jobs := range 5 {
		w := newSecureWorld(t, simlink.Config{Seed: 4, Delay: time.Microsecond}, Limits{}, usual, 0)
		hold := &heldJobs{}
		w.runner = hold
		a, b := w.addNode(netip.MustParseAddrPort("10.0.0.1:17473")), w.addNode(netip.MustParseAddrPort("10.0.0.2:17473"))
		if err := b.host.Listen(service, b); err != nil {
			t.Fatal(err)
		}
		ca, cb := a.host.NewConn(plain), b.host.NewConn(plain)
		w.dial(a, b, ca, nil)
		done := 0
		for end := w.net.Now() + int64(20*time.Millisecond); w.net.Now() < end; {
			if !w.step() {
				break
			}
			if len(b.arrived) > 0 && cb.State() == Idle {
				w.accept(b, cb, nil)
			}
			if len(hold.jobs) > 0 && done < jobs {
				done++
				hold.run()
			}
		}
		if done != min(jobs, 4) || len(hold.jobs) > 1 {
			t.Fatalf("%d jobs of %d, %d wait", done, jobs, len(hold.jobs))
		}
		for n, c := range map[*node]*Conn{a: ca, b: cb} {
			if c.State() != Idle {
				if err := n.eng.Disconnect(c, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		hold.run()
		w.run(5 * time.Second)
		hold.run()
		w.run(time.Second)
		for i, n := range w.nodes {
			for _, r := range n.arrived {
				_ = n.eng.Forget(r)
			}
			n.eng.forgetAllRejected()
			if n.eng.Connections() != 0 || n.eng.timers.armed() != 0 || len(n.eng.requests) != 0 || n.eng.halfOpen.used != 0 || n.link.Paths() != 0 {
				t.Errorf("%d jobs, node %d: %d connections, %d timers, %d requests, %d half-open, %d paths left", jobs, i,
					n.eng.Connections(), n.eng.timers.armed(), len(n.eng.requests), n.eng.halfOpen.used, n.link.Paths())
			}
			n.eng.Close()
		}
	}
}

// Jobs may run on other goroutines while the engines work.
func TestSecureJobsOnGoroutines(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Seed: 4, Delay: time.Microsecond}, Limits{}, usual, 0)
	jobs := &goJobs{}
	w.runner, w.noise.random, w.noise.model = jobs, rand.Reader, nil
	a, b := w.addNode(netip.MustParseAddrPort("10.0.0.1:17473")), w.addNode(netip.MustParseAddrPort("10.0.0.2:17473"))
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	var all []*Conn
	for range 20 {
		c := a.host.NewConn(plain)
		w.dial(a, b, c, []byte("hello"))
		all = append(all, c)
	}
	for end := w.net.Now() + int64(time.Second); w.net.Now() < end; {
		w.step()
		if len(b.arrived) > 0 {
			w.accept(b, b.host.NewConn(plain), nil)
		}
		jobs.Wait() // jobs have run while the engines did
	}
	for i, c := range all {
		if c.State() != Established {
			t.Errorf("connection %d: state %v", i, c.State())
		}
	}
}

// An engine that closes must still send the Rejects whose jobs are done.
func TestSecureRejectAtClose(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Seed: 4, Delay: time.Microsecond}, Limits{}, usual, 0)
	hold := &heldJobs{}
	w.runner = hold
	a, b := w.addNode(netip.MustParseAddrPort("10.0.0.1:17473")), w.addNode(netip.MustParseAddrPort("10.0.0.2:17473"))
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	c := a.host.NewConn(plain)
	w.dial(a, b, c, nil)
	for len(b.arrived) == 0 {
		w.run(10 * time.Millisecond)
		hold.run()
	}
	path, err := b.link.Resolve(b.arrived[0].From, 1)
	if err == nil {
		err = b.eng.Reject(b.arrived[0], path, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	hold.run()
	b.eng.Close()
	b.down = true
	if b.link.Paths() != 0 || len(b.eng.requests) != 0 {
		t.Errorf("%d paths, %d requests left", b.link.Paths(), len(b.eng.requests))
	}
	w.run(10 * time.Millisecond)
	hold.run()
	w.until("the answer", time.Second, func() bool { return c.State() == Closed })
	w.want(a.connect, KindPeerRejected)
}

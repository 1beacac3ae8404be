package lease

import (
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(child(role))
	}
	goleak.VerifyTestMain(m)
}

// A client gets the facts and the files of a lease, and the lease ends with the connection.
func TestLease(t *testing.T) {
	k := newFake()
	k.sockets = 3
	d := start(t, k, socketPath(t), mine())
	c := dial(t, d.path)
	g, err := c.Lease(Request{Interface: "eth0", Mode: Direct, Frames: 512, Engines: 4})
	check(t, err)
	defer g.Close()
	if len(g.Sockets) != 3 || len(g.UMEMs) != 3 || !sameFile(t, g.Sockets[2], g.UMEMs[2]) || sameFile(t, g.Sockets[0], g.Sockets[1]) {
		t.Error("not the files that the kernel made, in their order")
	}
	want := k.grant(1, Request{Interface: "eth0", Mode: Direct, Frames: 512, FrameSize: 4096, Engines: 4, Rings: Rings{2048, 1024, 2048, 1024}})
	got := *g
	got.Sockets, got.UMEMs = nil, nil
	if diff := cmp.Diff(want, &got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	all, err := c.List()
	check(t, err)
	if len(all) != 1 || all[0].ID != 1 || all[0].Holder.PID != int32(os.Getpid()) || all[0].Bytes != 3*512*4096 || time.Since(all[0].Since) > time.Minute {
		t.Errorf("listed %+v", all)
	}
	_, err = c.Lease(Request{Interface: "eth0", Mode: Shared})
	if err == nil {
		t.Error("a second lease of a connection")
	}
	c.Close()
	until(t, "the lease ends", func() bool { return k.count() == 0 && len(d.Leases()) == 0 })
}

// One lease at a time has a qualifier.
func TestListen(t *testing.T) {
	d := start(t, newFake(), socketPath(t), mine())
	a, b := dial(t, d.path), dial(t, d.path)
	wants(t, "without a lease", a.Listen(5), ErrNoLease)
	borrow(t, a)
	borrow(t, b)
	wants(t, "first", a.Listen(5), nil)
	wants(t, "again", a.Listen(5), nil)
	wants(t, "other lease", b.Listen(5), ErrTaken)
	wants(t, "not its own", b.Unlisten(5), nil)
	wants(t, "other lease", b.Listen(5), ErrTaken)
	wants(t, "its own", a.Unlisten(5), nil)
	wants(t, "free", b.Listen(5), nil)
	b.Close()
	until(t, "the qualifier is free", func() bool { return a.Listen(5) == nil })
	r, err := a.Route(netip.MustParseAddr("198.51.100.1"))
	if err != nil || r != (Route{netip.MustParseAddr("192.0.2.1"), 1400}) {
		t.Errorf("route %v, %v", r, err)
	}
	_, err = a.Route(netip.MustParseAddr("2001:db8::2"))
	wants(t, "IPv6", err, ErrNoRoute)
	_, err = a.Route(netip.Addr{})
	wants(t, "no address", err, ErrInvalid)
}

// What is wrong with a request has a status of its own.
func TestRefusals(t *testing.T) {
	k := newFake()
	d := start(t, k, socketPath(t), mine()+"user:54321 interface=eth1\n")
	c := dial(t, d.path)
	for name, r := range map[string]struct {
		Request
		want error
	}{
		"interface": {Request{Interface: "eth2", Mode: Shared}, ErrInterface},
		"name":      {Request{Interface: "../x", Mode: Shared}, ErrInvalid},
		"no name":   {Request{Mode: Shared}, ErrInvalid},
		"mode":      {Request{Interface: "eth0", Mode: "other"}, ErrInvalid},
		"frames":    {Request{Interface: "eth0", Mode: Shared, Frames: 1000}, ErrInvalid},
		"many":      {Request{Interface: "eth0", Mode: Shared, Frames: 1 << 21}, ErrInvalid},
		"size":      {Request{Interface: "eth0", Mode: Shared, FrameSize: 8192}, ErrInvalid},
		"ring":      {Request{Interface: "eth0", Mode: Shared, Rings: Rings{Rx: 1 << 31}}, ErrInvalid},
		"engines":   {Request{Interface: "eth0", Mode: Shared, Engines: 65}, ErrInvalid},
		"ports":     {Request{Interface: "eth0", Mode: Shared, Ports: 128}, ErrInvalid},
		"memory":    {Request{Interface: "eth0", Mode: Shared, Memory: 1 << 40}, ErrInvalid},
		"bytes":     {Request{Interface: "eth0", Mode: Shared, Memory: 1<<32 - 1}, ErrInvalid},
		"too much":  {Request{Interface: "eth0", Mode: Shared, Frames: 1 << 20, Memory: 1 << 32}, ErrLimit},
	} {
		_, err := c.Lease(r.Request)
		wants(t, name, err, r.want)
	}
	k.makes(nil, ErrBusy)
	_, err := c.Lease(Request{Interface: "eth0", Mode: Shared})
	wants(t, "busy", err, ErrBusy)
	if n := k.count(); n != 0 {
		t.Errorf("%d leases", n)
	}
	if got := d.Counters().Refused["interface"]; got != 1 {
		t.Errorf("counted %d refusals for the interface", got)
	}
	_, err = Dial(socketPath(t))
	wants(t, "no daemon", err, ErrNoDaemon)
	_, err = Listen(d.path)
	if err == nil {
		t.Error("two daemons at one path")
	}
}

// A user has no more leases and memory than a rule allows. The memory of all sockets counts.
func TestRoom(t *testing.T) {
	k := newFake()
	k.sockets = 4
	d := start(t, k, socketPath(t), mine()+"user:54321\n")
	d.SetPolicy(policy(t, "user:"+uid()+" leases=2 memory=128M"))
	g := borrow(t, dial(t, d.path)) // 64 MiB
	if g.Interface != "eth0" {
		t.Errorf("lease of %q", g.Interface)
	}
	c := dial(t, d.path)
	_, err := c.Lease(Request{Interface: "eth0", Mode: Shared, Memory: 4096})
	wants(t, "more memory than the rest", err, ErrLimit)
	_, err = c.Lease(Request{Interface: "eth0", Mode: Direct})
	wants(t, "direct", err, ErrDenied)
	borrow(t, c)
	_, err = dial(t, d.path).Lease(Request{Interface: "eth0", Mode: Shared, Frames: 256})
	wants(t, "a third lease", err, ErrLimit)
	c.Close()
	until(t, "a place", func() bool { return k.count() == 1 })
	borrow(t, dial(t, d.path))
}

// When a daemon ends, leases go on. The next one finds them, the client adopts its lease with the next call, and leases of
// ended clients are removed.
func TestRestart(t *testing.T) {
	k, path := newFake(), socketPath(t)
	d := start(t, k, path, mine())
	a, b := dial(t, path), dial(t, path)
	borrow(t, a)
	gone := borrow(t, b)
	check(t, a.Listen(5))
	d.stop()
	if k.count() != 2 {
		t.Fatalf("%d leases after the end of the daemon", k.count())
	}
	k.dead[gone.ID] = true
	d = start(t, k, path, mine())
	if got := d.Leases(); len(got) != 1 || got[0].ID == gone.ID {
		t.Errorf("the new daemon has %v", got)
	}
	check(t, a.Listen(6))
	if got := d.Counters(); got.Adopted != 1 {
		t.Errorf("%d adopted", got.Adopted)
	}
	wants(t, "the lease of a client that was swept", b.Listen(7), ErrNoLease)
	a.Close()
	until(t, "the adopted lease ends", func() bool { return k.count() == 0 && len(d.Leases()) == 0 })
}

// Nobody adopts a lease twice, or one that has a connection.
func TestAdoptTwice(t *testing.T) {
	k, path := newFake(), socketPath(t)
	d := start(t, k, path, mine())
	a := dial(t, path)
	g := borrow(t, a)
	thief := dial(t, path)
	thief.lease = g.ID
	wants(t, "with a connection", thief.adopt(), ErrNoLease)
	d.stop()
	start(t, k, path, mine())
	check(t, a.Listen(1))
	thief = dial(t, path)
	thief.lease = g.ID
	wants(t, "adopted", thief.adopt(), ErrNoLease)
	check(t, a.Listen(2))
}

// A client that sends before it is refused gets the reason.
func TestRefusedWhileSending(t *testing.T) {
	d := start(t, newFake(), socketPath(t), "user:54321")
	if os.Getuid() == 0 {
		d.SetPolicy(policy(t, "")) // root may list, within a bound
		for range spareConnections {
			dial(t, d.path)
		}
	}
	for range 50 {
		_, err := dial(t, d.path).Lease(Request{Interface: "eth0", Mode: Shared})
		if !errors.Is(err, ErrLimit) && !errors.Is(err, ErrDenied) {
			t.Fatal(err)
		}
	}
}

package lease

import (
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// honest checks that a client gets a lease and uses it beside an attack.
func honest(t *testing.T, path string) {
	t.Helper()
	c := dial(t, path)
	g := borrow(t, c)
	check(t, c.Listen(uint64(g.ID)))
	c.Close()
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(all)
}

// A message with descriptors, a malformed one, an answer and an empty one end the connection or are refused. The daemon
// keeps no descriptor of a client.
func TestHostileMessages(t *testing.T) {
	d := start(t, newFake(), socketPath(t), mine())
	lease := encode(kindLease, 1, (&Request{Interface: "eth0", Mode: Shared}).body())
	before := descriptors(t)
	for name, m := range map[string][]byte{
		"empty":        {},
		"half":         lease[:len(lease)/2],
		"half header":  lease[:headerSize-1],
		"longer":       append(lease[:len(lease):len(lease)], 0),
		"longest":      make([]byte, 60000),
		"kind":         encode(kind(77), 1, &doneBody{}),
		"version":      append([]byte{0, 9}, lease[2:]...),
		"other kind 0": make([]byte, headerSize),
	} {
		c := rawDial(t, d.path)
		if _, err := c.Write(m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ended(t, c)
		c.Close()
	}
	c := rawDial(t, d.path)
	_, _, err := c.WriteMsgUnix(lease, syscall.UnixRights(0, 1, 2), nil)
	check(t, err)
	ended(t, c)
	c.Close()
	until(t, "connections end", func() bool { return d.Counters().Connections == 0 })
	until(t, "descriptors", func() bool { return descriptors(t) <= before })
	honest(t, d.path)
}

// An answer in place of a request is refused.
func TestAnswerAsRequest(t *testing.T) {
	d := start(t, newFake(), socketPath(t), mine())
	c := dial(t, d.path)
	_, _, err := c.call(kindDone, &doneBody{}, kindDone)
	wants(t, "an answer", err, ErrInvalid)
	borrow(t, c)
}

// A client that never reads is given up. Nobody waits for it.
func TestNeverReads(t *testing.T) {
	k := newFake()
	d := start(t, k, socketPath(t), mine())
	c := rawDial(t, d.path)
	_, err := c.Write(encode(kindLease, 1, (&Request{Interface: "eth0", Mode: Shared}).body()))
	check(t, err)
	for {
		if _, err := c.Write(encode(kindList, 2, &listBody{})); err != nil {
			break // given up
		}
	}
	until(t, "its lease ends", func() bool { return k.count() == 0 })
	honest(t, d.path)
}

// A user who sends requests as fast as possible gets the rate of a user, and other users' rates are their own.
func TestFlood(t *testing.T) {
	var s accounts
	s.byUID = make(map[uint32]*account)
	now := time.Now()
	a, b := s.enter(1, 8, now), s.enter(2, 8, now)
	var late time.Duration
	for range 1_000_000 {
		late = a.take(1, now)
	}
	want := time.Duration(float64(1_000_000-requestBurst) / requestRate * float64(time.Second))
	if late != want {
		t.Errorf("the last request waits %v, want %v", late, want)
	}
	if d := b.take(1, now); d != 0 {
		t.Errorf("another user waits %v", d)
	}
	s.leave(a)
	s.leave(b)
	s.prune(now.Add(time.Minute))
	if s.byUID[1] == nil || s.byUID[2] != nil {
		t.Error("a user in debt is forgotten, or one without debt is kept")
	}
	if again := s.enter(1, 8, now.Add(time.Minute)); again != a {
		t.Error("a user escapes its debt by a new connection")
	}
}

// A user has a bounded number of connections. One that sends nothing is closed.
func TestConnections(t *testing.T) {
	k := newFake()
	k.idle = 50 * time.Millisecond
	d := start(t, k, socketPath(t), "user:"+uid()+" leases=1")
	var held []*Client
	for {
		c := dial(t, d.path)
		held = append(held, c)
		if _, err := c.List(); err != nil {
			wants(t, "one more", err, ErrLimit)
			break
		}
	}
	if len(held) > spareConnections+2 {
		t.Errorf("%d connections", len(held))
	}
	until(t, "idle connections end", func() bool { return d.Counters().Connections == 0 })
	honest(t, d.path)
}

// Leases that are taken and dropped at once, by many connections, leave nothing.
func TestHeldAndDropped(t *testing.T) {
	k := newFake()
	d := start(t, k, socketPath(t), mine())
	before := descriptors(t)
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 20 {
				c, err := Dial(d.path)
				if err != nil {
					t.Error(err)
					return
				}
				if g, err := c.Lease(Request{Interface: "eth0", Mode: Shared}); err == nil {
					g.Close()
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	until(t, "no lease, no connection", func() bool { return k.count() == 0 && d.Counters().Connections == 0 })
	until(t, "no descriptor", func() bool { return descriptors(t) <= before })
}

// A client that hangs up while its lease is made does not leave it, and one whose lease takes long holds up no call of
// another client.
func TestHangUpDuringLease(t *testing.T) {
	k := newFake()
	d := start(t, k, socketPath(t), mine())
	other := dial(t, d.path)
	borrow(t, other)
	busy := make(chan struct{})
	k.makes(busy, nil)
	c := rawDial(t, d.path)
	_, err := c.Write(encode(kindLease, 1, (&Request{Interface: "eth0", Mode: Shared}).body()))
	check(t, err)
	check(t, other.Listen(3))
	c.Close()
	close(busy)
	until(t, "the lease ends", func() bool { return k.count() == 1 && d.Counters().Connections == 1 })
}

// Users without rights fill no log.
func TestRefusalLog(t *testing.T) {
	var l logLimit
	now, lines := time.Now(), 0
	for range 1_000_000 {
		if _, ok := l.next(now); ok {
			lines++
		}
	}
	hidden, ok := l.next(now.Add(time.Second))
	if lines != maxLines || !ok || hidden != 1_000_000-maxLines {
		t.Errorf("%d lines, then one with %d hidden", lines, hidden)
	}
}

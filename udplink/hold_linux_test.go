package udplink

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// holding makes end B keep the packets that arrive for the returned address, and lets both ends know their neighbours.
func holding(t *testing.T, l *lab.Lab) netip.Addr {
	t.Helper()
	holds := netip.MustParseAddr("10.73.0.250")
	onSide(t, l, lab.B, func() error { return labtest.AddAddress(lab.Interface, netip.PrefixFrom(holds, 32)) })
	labtest.Hold(t, l, lab.B, holds)
	onSide(t, l, lab.A, func() error { return labtest.SetNeighbour(lab.Interface, holds, lab.B.MAC()) })
	return holds
}

// Replies to an address whose owner keeps them on the way take a bounded share of the send buffer. Packets of
// connections leave as before. Replies to others leave again after a while, because the link renews its socket.
func TestHeldReplies(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	const buffer = 212992
	a := open(t, l, lab.A, lab.A.Addr4(), Options{Buffer: buffer})
	b := open(t, l, lab.B, lab.B.Addr4(), Options{})
	p := mustResolve(t, a, b.Local())
	attacker := dialFrom(t, l, holding(t, l), a.Local())
	newcomer := dialFrom(t, l, lab.B.Addr4(), a.Local())
	bufs := make([]link.Buf, 64)
	// answer sends back what has arrived. It reports whether something came.
	answer := func() (some bool) {
		onSide(t, l, lab.A, func() error {
			n := a.Recv(bufs)
			for i := range bufs[:n] {
				bufs[i].Path = link.PathReply
			}
			a.Send(bufs[:n])
			some = n > 0
			return nil
		})
		return some
	}
	send(t, a, p, "resolves the neighbour")
	b.Free(receive(t, b, bufs))
	for range 2000 {
		if _, err := attacker.conn.Write([]byte("question")); err != nil {
			t.Fatal(err)
		}
		answer()
	}
	used, err := unix.IoctlGetUint32(a.sock.(*batch).fd, unix.SIOCOUTQ)
	if most := 2*buffer/4 + 2048; err != nil || int(used) > most || int(used) < most/2 {
		t.Errorf("%d bytes in the send buffer, want up to %d (%v)", used, most, err)
	}
	send(t, a, p, "passes")
	b.Free(receive(t, b, bufs))
	if s := a.Stats(); s.TxDropped == 0 || s.TxFull != 0 {
		t.Errorf("%d packets dropped, %d for which the send buffer was full", s.TxDropped, s.TxFull)
	}

	answered := make(chan time.Duration, 1)
	go func() {
		defer close(answered) // if ask fails the test
		answered <- newcomer.ask()
	}()
	for {
		select {
		case took := <-answered:
			t.Logf("the newcomer was answered after %v", took)
			return
		case <-time.After(time.Millisecond):
			if _, err := attacker.conn.Write([]byte("question")); err != nil {
				t.Fatal(err)
			}
			answer()
		}
	}
}

// A peer keeps the packets of its connection on the way until the send buffer is full. The link renews its socket, and
// packets to others leave again, from the same port, on the same paths, and arrive on them.
func TestHeldPacketsOfAConnection(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	a := open(t, l, lab.A, lab.A.Addr4(), Options{Buffer: 212992})
	b := open(t, l, lab.B, lab.B.Addr4(), Options{})
	p, back := mustResolve(t, a, b.Local()), mustResolve(t, b, a.Local())
	held := mustResolve(t, a, netip.AddrPortFrom(holding(t, l), DefaultPort))
	bufs := make([]link.Buf, 64)
	send(t, a, p, "resolves the neighbour")
	b.Free(receive(t, b, bufs))
	for a.Stats().TxFull == 0 {
		send(t, a, held, "held")
	}
	const enough = 10 // the attacker's queue lets a packet go now and then
	got := 0
	for deadline := time.Now().Add(20 * time.Second); got < enough; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d packets left in 20 s", got)
		}
		onSide(t, l, lab.A, func() error {
			send(t, a, held, "held")
			send(t, a, p, "leaves")
			return nil
		})
		n := b.Recv(bufs)
		for i := range bufs[:n] {
			if from := b.Source(&bufs[i]); from != a.Local() {
				t.Errorf("a packet from %v, want %v", from, a.Local())
			}
		}
		b.Free(bufs[:n])
		got += n
	}
	send(t, b, back, "arrives")
	a.Free(receive(t, a, bufs))
	for _, option := range []int{unix.SO_REUSEPORT, unix.SO_REUSEADDR} {
		if on, err := unix.GetsockoptInt(a.sock.(*batch).fd, unix.SOL_SOCKET, option); on != 0 || err != nil {
			t.Errorf("another socket may take the port: option %d is %d (%v)", option, on, err)
		}
	}
}

// A socket is not renewed while most packets find room, nor from another network namespace.
func TestRenewal(t *testing.T) {
	var c congestion
	c.refuse(1)
	c.begun = c.begun.Add(-patience)
	c.passed = 2
	if c.refuse(1); c.stuck {
		t.Error("2 packets passed and 2 were refused")
	}
	c.begun = c.begun.Add(-patience)
	if c.refuse(1); !c.stuck {
		t.Error("no packet passed")
	}
	l := labtest.New(t, lab.Options{})
	a := open(t, l, lab.A, lab.A.Addr4(), Options{})
	s := a.sock.(*batch)
	if err := s.renew(); err == nil {
		t.Error("renewed in another namespace")
	}
	onSide(t, l, lab.A, s.renew)
}

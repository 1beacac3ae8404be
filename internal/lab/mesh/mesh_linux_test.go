package mesh

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

// TestMesh: hosts reach each other unless they are cut off, and a part of the packets is lost.
func TestMesh(t *testing.T) {
	m := New(t, 3)
	var conns []*net.UDPConn
	for i := range 3 {
		err := m.Do(i, func() error {
			c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(m.Addr(i), 9)))
			conns = append(conns, c)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	// arrive returns the number of 100 packets that arrive. Packets of awaitARP may come before them.
	arrive := func(from, to int) (n int) {
		buf := make([]byte, 1)
		for range 100 {
			if _, err := conns[from].WriteTo([]byte("y"), conns[to].LocalAddr()); err != nil {
				t.Fatal(err)
			}
			_ = conns[to].SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			for buf[0] = 0; buf[0] != 'y'; {
				if _, err := conns[to].Read(buf); errors.Is(err, os.ErrDeadlineExceeded) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if buf[0] == 'y' {
				n++
			}
		}
		return n
	}
	for from := range 3 {
		for to := range 3 {
			if from != to {
				awaitARP(t, conns[from], conns[to])
			}
		}
	}
	if err := m.SetLoss(0, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := m.SetLoss(1, 2, 0.5); err != nil {
		t.Fatal(err)
	}
	if got := arrive(0, 1); got != 0 {
		t.Errorf("%d packets have arrived at a host that is cut off", got)
	}
	if got := arrive(1, 2); got < 5 || got > 95 {
		t.Errorf("%d packets of 100 have arrived, half of them are to be lost", got)
	}
	if err := m.SetLossAll(0); err != nil {
		t.Fatal(err)
	}
	awaitARP(t, conns[0], conns[1])
}

// awaitARP sends until a packet has arrived.
func awaitARP(t *testing.T, from, to *net.UDPConn) {
	t.Helper()
	for range 1000 {
		if _, err := from.WriteTo([]byte("x"), to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		_ = to.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := to.Read(make([]byte, 1)); err == nil {
			return
		}
	}
	t.Fatalf("no packet from %v arrives at %v", from.LocalAddr(), to.LocalAddr())
}

package lab

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSetLoss counts datagrams between two loopback sockets. It needs no privilege.
func TestSetLoss(t *testing.T) {
	for _, part := range []float64{0, 0.1, 1} {
		to, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		if err := SetLoss(to, part); err != nil {
			t.Fatal(err)
		}
		from, err := net.DialUDP("udp", nil, to.LocalAddr().(*net.UDPAddr))
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		const sent = 5000
		got := 0
		for range sent { // one at a time, so that no buffer overflows
			if _, err := from.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
			got += arrived(t, to)
		}
		// The standard deviation is 21 packets at one tenth.
		if want := int((1 - part) * sent); got < want-150 || got > want+150 || part == 0 && got != sent || part == 1 && got != 0 {
			t.Errorf("part %v: %d of %d packets arrived, want about %d", part, got, sent, want)
		}
	}
}

// arrived returns the number of datagrams that wait. On loopback a datagram has arrived when the send returns.
func arrived(t *testing.T, c *net.UDPConn) (n int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Read(func(fd uintptr) bool {
		for b := make([]byte, 1); ; n++ {
			if _, _, err := unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT); err != nil {
				return true
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

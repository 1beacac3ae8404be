package stream

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// TestCloseRead: Reads return io.EOF, also a blocked one. The peer can write any number of bytes although nobody reads, and
// gets what is written to it.
func TestCloseRead(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		x, y := newPair(t, a, b)
		_, err := y.Write([]byte("unread"))
		check(t, err)
		_, err = io.ReadFull(x, make([]byte, 2))
		check(t, err)
		blocked := make(chan error, 1)
		check(t, x.SetReadDeadline(time.Now().Add(20*time.Second)))
		go func() {
			_, err := io.Copy(io.Discard, x)
			blocked <- err
		}()
		check(t, x.CloseRead())
		check(t, soon(t, "a Read", func() error { return <-blocked }))
		check(t, soon(t, "Write", func() error {
			_, err := y.Write(make([]byte, 4*maxRing))
			return err
		}))
		if n, err := x.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("Read: %d, %v", n, err)
		}
		if _, err := x.Peek(); err != io.EOF {
			t.Errorf("Peek: %v", err)
		}
		check(t, x.CloseRead())
		_, err = x.Write([]byte("response"))
		check(t, err)
		check(t, x.Close())
		if got, err := io.ReadAll(y); string(got) != "response" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if err := x.CloseRead(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		check(t, y.Close())
	})
}

// TestHalfCloseAfterPeer: a stream whose peer has closed it can still be closed in each direction, as a TCP connection can.
func TestHalfCloseAfterPeer(t *testing.T) {
	a, b := udp(t)
	x, y := newPair(t, a, b)
	check(t, y.Close())
	if _, err := x.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("Read: %v", err)
	}
	for range 2 {
		check(t, errors.Join(x.CloseWrite(), x.CloseRead()))
	}
	check(t, x.Close())
}

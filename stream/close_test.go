package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// stuff writes until the rings are full, and returns how many bytes were written.
func stuff(t *testing.T, c *Conn) (n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		check(t, c.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
		more, err := c.Write(make([]byte, 64<<20))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if n += more; more == 0 && filled(c) { // on a loaded host the rings are not full after 50 ms
			return n
		}
		if time.Now().After(end) {
			t.Fatalf("the rings are not full after %d bytes", n)
		}
	}
}

// filled reports whether the peer's ring has no room.
func filled(c *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.peer.size > 0 && c.out.posted == c.out.peer.limit()
}

// TestCloseOfManyIsQuick: Close of streams whose peers do not read, one after the other, returns at once. The peers
// read every byte later.
func TestCloseOfManyIsQuick(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		const streams = 5
		var peers [streams]*Conn
		var written [streams]int
		var took time.Duration
		for i := range streams {
			x, y := newPair(t, a, b)
			peers[i], written[i] = y, stuff(t, x)
			start := time.Now()
			check(t, x.Close())
			took += time.Since(start)
		}
		if took > time.Second {
			t.Errorf("%d calls of Close took %v", streams, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain, before the peers have read: %v", err)
		}
		for i, y := range peers {
			if n, err := io.Copy(io.Discard, y); int(n) != written[i] || err != nil {
				t.Errorf("read %d bytes, %v; %d were written", n, err, written[i])
			}
		}
		check(t, Drain(t.Context()))
	})
}

// TestHTTPServerClose: http.Server.Close with clients that do not read takes no longer than over TCP.
func TestHTTPServerClose(t *testing.T) {
	a, b := udp(t)
	lc := ListenConfig{IA: b}
	l, err := lc.Listen(t.Context(), 0)
	check(t, err)
	answering := make(chan struct{}, 8)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answering <- struct{}{}
		_, _ = w.Write(make([]byte, 8<<20))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	for range cap(answering) {
		d := Dialer{IA: a}
		c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		check(t, err)
		defer func() { check(t, errors.Join(c.(*Conn).SetLinger(0), c.Close())) }()
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		check(t, err)
		<-answering
	}
	start := time.Now()
	check(t, server.Close())
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %v", took)
	}
	if err := <-served; err != http.ErrServerClosed {
		t.Error(err)
	}
}

// TestOrphanOfDeadPeer: when the peer of an orphan resets its end, the orphan ends.
func TestOrphanOfDeadPeer(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	stuff(t, x)
	check(t, x.Close())
	check(t, errors.Join(y.SetLinger(0), y.Close()))
	check(t, Drain(t.Context()))
}

// TestOrphanOfClosedAdapter: closing the adapter of the caller ends its orphans.
func TestOrphanOfClosedAdapter(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, _ := newPair(t, a, b)
	stuff(t, x)
	check(t, x.Close())
	check(t, a.Close())
	check(t, Drain(t.Context()))
}

// TestOrphanIsReset: an orphan whose peer takes nothing for orphanTime is reset, and earlier if the peer has sent bytes
// that nobody reads. Progress of the peer puts it off.
func TestOrphanIsReset(t *testing.T) {
	for _, c := range []struct {
		name  string
		sends bool
		limit time.Duration
	}{
		{"silent peer", false, orphanTime},
		{"peer that sends", true, unreadTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := sim(t, simlink.Config{})
			x, y := newPair(t, a, b)
			stuff(t, x)
			if c.sends {
				write(t, y, "for nobody")
			}
			check(t, x.Close())
			if c.sends {
				awaitThat(t, x, func() bool { return x.in.received > 0 })
			}
			later := func(d time.Duration) {
				x.mu.Lock()
				x.moved.at = x.moved.at.Add(-d)
				x.mu.Unlock()
				x.stack.tidy()
			}
			before := x.position()
			later(c.limit - time.Second)
			for was := reported(y); reported(y) == was; { // no more than that, so that something is left
				_, err := io.ReadFull(y, make([]byte, minRing))
				check(t, err)
			}
			awaitThat(t, x, func() bool { return x.position() > before })
			later(time.Second)
			if orphaned.n == 0 {
				t.Error("reset in spite of its progress")
			}
			later(c.limit)
			check(t, Drain(t.Context()))
			wantError(t, syscall.ECONNRESET, func() error {
				_, err := io.Copy(io.Discard, y)
				return err
			})
		})
	}
}

// reported returns the bytes of which a stream has told the peer that they were read.
func reported(c *Conn) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.reported
}

// awaitThat waits until a condition on a stream holds.
func awaitThat(t *testing.T, c *Conn, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		c.mu.Lock()
		ok := holds()
		c.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}

// TestTooManyOrphans: beyond the share of an address, Close resets the stream and says so.
func TestTooManyOrphans(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	q := &x.stack.orphans.quota
	n := 0
	for ; q.take(x.peer(), 1); n++ {
	}
	defer q.give(x.peer(), n)
	if n < maxOrphans/6 || n > maxOrphans/4 {
		t.Errorf("an address may have %d orphans", n)
	}
	stuff(t, x)
	if err := x.Close(); !errors.Is(err, syscall.ENOBUFS) {
		t.Errorf("Close: %v", err)
	}
	wantError(t, syscall.ECONNRESET, func() error {
		_, err := io.Copy(io.Discard, y)
		return err
	})
}

// TestCloseWaitsOnce: the peers' engines acknowledge nothing, and only the first of many calls of Close waits for that.
func TestCloseWaitsOnce(t *testing.T) {
	a, b := sim(t, simlink.Config{Loss: 1})
	_ = b
	s := newStack(adapter{name: "test", ia: a})
	if s.orphans.closeWait() != closeWait {
		t.Error("the first Close does not wait")
	}
	s.orphans.hasten()
	if s.orphans.closeWait() != 0 {
		t.Error("the next Close waits too")
	}
}

// TestEndWithAccept: a service that sends and closes at once. Dial returns the stream, whose Read returns the bytes, and
// then the end.
func TestEndWithAccept(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		lc := ListenConfig{IA: b}
		l, err := lc.Listen(t.Context(), 0)
		check(t, err)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "greeting")
				_ = c.Close()
			}
		}()
		d := Dialer{IA: a}
		n := 3000
		if testing.Short() {
			n = 300
		}
		for range n {
			c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
			check(t, err)
			if got, err := io.ReadAll(c); !bytes.Equal(got, []byte("greeting")) || err != nil {
				t.Fatalf("read %q, %v", got, err)
			}
			check(t, c.Close())
		}
		check(t, l.Close())
	})
}

var _ net.Conn = (*Conn)(nil)

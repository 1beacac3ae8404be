package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// hosts returns n adapters of a simulated network.
func hosts(t *testing.T, n int) (all []*dat.IA) {
	t.Helper()
	network := simlink.New(simlink.Config{Immediate: true})
	for i := range n {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(i), 1})
		ia, err := dat.OpenLink(options, network.Link(netip.AddrPortFrom(addr, dat.DefaultPort)))
		check(t, err)
		t.Cleanup(func() { _ = ia.Close() })
		all = append(all, ia)
	}
	return all
}

func listen(t *testing.T, lc ListenConfig) *Listener {
	t.Helper()
	l, err := lc.Listen(t.Context(), 0)
	check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// dialTo dials, and closes the stream at the end of the test.
func dialTo(t *testing.T, from *dat.IA, l *Listener) *Conn {
	t.Helper()
	d := Dialer{IA: from}
	c, err := d.dial(t.Context(), l.Addr().String())
	check(t, err)
	t.Cleanup(c.reset)
	return c
}

// acceptSoon returns the result of an Accept that must not block for long.
func acceptSoon(t *testing.T, l *Listener) *Conn {
	t.Helper()
	check(t, l.SetDeadline(time.Now().Add(5*time.Second)))
	c, err := l.Accept()
	check(t, err)
	t.Cleanup(c.(*Conn).reset)
	return c.(*Conn)
}

// TestDialBeforeAccept: one goroutine dials first and accepts then, with bytes and an end in between. On a path that loses
// packets, a later stream may be established first, as with TCP.
func TestDialBeforeAccept(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		l := listen(t, ListenConfig{IA: b})
		sent := []string{"first", "second", "third"}
		for _, text := range sent {
			c := dialTo(t, a, l)
			write(t, c, text)
			check(t, c.Close())
		}
		var read []string
		for range sent {
			text, err := io.ReadAll(acceptSoon(t, l))
			check(t, err)
			read = append(read, string(text))
		}
		if slices.Sort(read); !slices.Equal(read, sent) {
			t.Errorf("read %q, want %q", read, sent)
		}
	})
}

// tryDial dials for a short time.
func tryDial(t *testing.T, from *dat.IA, l *Listener) error {
	t.Helper()
	d := Dialer{IA: from, Timeout: 50 * time.Millisecond}
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err == nil {
		t.Cleanup(c.(*Conn).reset)
	}
	return err
}

// TestBacklogIsFull: when the backlog has no room, a dial waits until Accept makes some. An address that has used up its
// share leaves room for another one.
func TestBacklogIsFull(t *testing.T) {
	all := hosts(t, 3)
	l := listen(t, ListenConfig{IA: all[0], Backlog: 8})
	const dials = 8
	var ends sync.WaitGroup
	defer ends.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var returned atomic.Int32
	results := make(chan error, dials)
	for range dials {
		ends.Go(func() {
			d := Dialer{IA: all[1]}
			c, err := d.dial(ctx, l.Addr().String())
			if err == nil {
				defer c.reset()
			}
			returned.Add(1)
			results <- err
			<-ctx.Done() // until then the stream keeps its place
		})
	}
	n := 0
	for end, waiting := time.Now().Add(20*time.Second), 0; n+waiting < dials; runtime.Gosched() {
		n = int(returned.Load())
		l.mu.Lock()
		waiting = len(l.waiting)
		l.mu.Unlock()
		if time.Now().After(end) {
			t.Fatalf("%d of %d dials have returned, and %d wait", n, dials, waiting)
		}
	}
	if n < 3 || n > 5 {
		t.Errorf("an address has %d places of 8", n)
	}
	dialTo(t, all[2], l)
	for range n {
		check(t, <-results)
	}
	for range 3 {
		acceptSoon(t, l)
	}
	check(t, soon(t, "dial", func() error { return <-results }))
}

// TestBacklogOfOne: the smallest backlog has a place.
func TestBacklogOfOne(t *testing.T) {
	all := hosts(t, 2)
	l := listen(t, ListenConfig{IA: all[0], Backlog: 1})
	dialTo(t, all[1], l)
	if err := tryDial(t, all[1], l); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("a second dial: %v", err)
	}
	acceptSoon(t, l)
}

// TestGivenUpDials: dials that are given up, before or after the accept, keep no place.
func TestGivenUpDials(t *testing.T) {
	all := hosts(t, 2)
	l := listen(t, ListenConfig{IA: all[0], Backlog: 4})
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		d := Dialer{IA: all[1]}
		if c, err := d.DialContext(ctx, "tcp", l.Addr().String()); err == nil {
			check(t, c.Close())
		}
		cancel()
		check(t, l.SetDeadline(time.Now().Add(time.Millisecond)))
		if c, err := l.Accept(); err == nil {
			check(t, c.Close())
		}
	}
	c := dialTo(t, all[1], l)
	write(t, c, "x")
	for end := time.Now().Add(5 * time.Second); ; {
		s := acceptSoon(t, l)
		if got := make([]byte, 1); time.Now().Before(end) {
			if _, err := io.ReadFull(s, got); err == nil {
				return
			}
		}
	}
}

// TestListenerDeadline: Accept ends at the deadline, which may move while it waits.
func TestListenerDeadline(t *testing.T) {
	l := listen(t, ListenConfig{IA: hosts(t, 1)[0]})
	for _, d := range []time.Duration{-time.Second, time.Millisecond} {
		check(t, l.SetDeadline(time.Now().Add(d)))
		_, err := l.Accept()
		if e := net.Error(nil); !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &e) || !e.Timeout() {
			t.Errorf("Accept with a deadline in %v: %v", d, err)
		}
	}
	check(t, l.SetDeadline(time.Now().Add(time.Hour)))
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	check(t, l.SetDeadline(time.Now()))
	wantError(t, os.ErrDeadlineExceeded, func() error { return soon(t, "Accept", func() error { return <-ended }) })
	check(t, l.SetDeadline(time.Time{}))
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	check(t, l.Close())
	wantError(t, net.ErrClosed, func() error { return soon(t, "Accept", func() error { return <-ended }) })
	wantError(t, net.ErrClosed, func() error { return l.SetDeadline(time.Time{}) })
}

// TestCloseListener: Close resets the streams that wait for Accept, and refuses the requests beyond the backlog.
func TestCloseListener(t *testing.T) {
	all := hosts(t, 2)
	l := listen(t, ListenConfig{IA: all[0], Backlog: 1})
	c := dialTo(t, all[1], l)
	refused := make(chan error, 1)
	go func() {
		d := Dialer{IA: all[1]}
		_, err := d.dial(context.Background(), l.Addr().String())
		refused <- err
	}()
	for waits := false; !waits; runtime.Gosched() {
		l.mu.Lock()
		waits = len(l.waiting) > 0
		l.mu.Unlock()
	}
	check(t, l.Close())
	wantError(t, syscall.ECONNRESET, func() error { _, err := c.Read(make([]byte, 1)); return err })
	wantError(t, syscall.ECONNREFUSED, func() error { return <-refused })
	if n := l.places.used; n != 0 {
		t.Logf("%d places are taken after Close", n)
	}
}

// TestClosedAdapter: when the program closes the adapter, blocked and later calls return net.ErrClosed, and say why.
func TestClosedAdapter(t *testing.T) {
	all := hosts(t, 2)
	ia, d, lc := all[0], Dialer{IA: all[0]}, ListenConfig{IA: all[0]}
	far := listen(t, ListenConfig{IA: all[1]})
	l := listen(t, lc)
	reads, writes := dialTo(t, ia, far), dialTo(t, ia, far)
	calls := []struct {
		name string
		call func() error
	}{
		{"Accept", func() error { _, err := l.Accept(); return err }},
		{"Read", func() error { _, err := reads.Read(make([]byte, 1)); return err }},
		{"Write", func() error { _, err := writes.Write(make([]byte, 4*maxRing)); return err }},
	}
	blocked := make([]chan error, len(calls))
	for i, c := range calls {
		blocked[i] = make(chan error, 1)
		go func() { blocked[i] <- c.call() }()
	}
	check(t, ia.Close())
	for i, c := range calls {
		wantClosedAdapter(t, "blocked "+c.name, soon(t, c.name, func() error { return <-blocked[i] }))
		wantClosedAdapter(t, c.name, soon(t, c.name, c.call))
	}
	_, err := d.dial(t.Context(), far.Addr().String())
	wantClosedAdapter(t, "Dial", err)
	_, err = lc.Listen(t.Context(), 0)
	wantClosedAdapter(t, "Listen", err)
}

func wantClosedAdapter(t *testing.T, call string, err error) {
	t.Helper()
	if !errors.Is(err, net.ErrClosed) || !errors.Is(err, dat.ErrAbort) || !strings.Contains(err.Error(), "the adapter was closed") {
		t.Errorf("%s: %v", call, err)
	}
}

package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// service answers requests at a port with a function of the test, in place of a stream.
func service(t *testing.T, ia *dat.IA, port uint16, answer func(*dat.CR)) {
	t.Helper()
	evd, err := ia.CreateEVD(8, nil, dat.EVDCR)
	check(t, err)
	_, err = ia.CreatePSP(dat.ConnQual(port), evd, dat.PSPConsumer)
	check(t, err)
	go func() {
		var ev dat.Event
		for {
			if _, err := evd.Wait(-1, 1, &ev); err != nil {
				return
			}
			answer(ev.CR)
		}
	}()
}

// accept accepts a request with private data.
func accept(t *testing.T, ia *dat.IA, cr *dat.CR, private string) {
	pz, err := ia.CreatePZ()
	check(t, err)
	evd, err := ia.CreateEVD(8, nil, dat.EVDDTO|dat.EVDConnection)
	check(t, err)
	ep, err := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
	check(t, err)
	check(t, cr.Accept(ep, []byte(private)))
}

const otherVersion = helloMagic + "\x07"

// TestDialErrors: each failure to connect is a net.OpError that says why, and of the kind that package net would return.
func TestDialErrors(t *testing.T) { eachLink(t, testDialErrors) }

func testDialErrors(t *testing.T, a, b *dat.IA) {
	p, err := b.Query()
	check(t, err)
	at := func(port string) string { return net.JoinHostPort(p.Address.String(), port) }
	nobody := p.Address.AsSlice()
	nobody[3] = 99
	nowhere := netip.AddrPortFrom(netip.AddrFrom4([4]byte(nobody)), 7000).String()
	service(t, b, 7001, func(cr *dat.CR) { _ = cr.Reject([]byte("full")) })
	service(t, b, 7002, func(cr *dat.CR) { _ = cr.Reject([]byte(otherVersion + "whatever")) })
	service(t, b, 7003, func(cr *dat.CR) { accept(t, b, cr, "a database") })
	service(t, b, 7004, func(cr *dat.CR) { accept(t, b, cr, otherVersion) })
	service(t, b, 7005, func(cr *dat.CR) {
		accept(t, b, cr, string(hello(remoteRing{context: 1, address: 1, size: minPeerRing - 1})))
	})
	service(t, b, 7006, func(cr *dat.CR) { refuse(cr, errors.New("no memory")) })
	none := context.Background()
	past, cancel := context.WithDeadline(none, time.Now().Add(-time.Second))
	defer cancel()
	cancelled, cancel := context.WithCancel(none)
	cancel()
	ours, soon := Dialer{IA: a}, Dialer{IA: a, Timeout: 50 * time.Millisecond}
	for _, c := range []struct {
		what    string
		ctx     context.Context // nil: one whose deadline is near
		dialer  Dialer
		address string
		kind    error // nil: no error of another package
		want    string
		timeout bool
	}{
		{"no port", none, ours, p.Address.String(), nil, "missing port", false},
		{"no number", none, ours, at("nothing"), nil, "unknown port", false},
		{"no adapter", none, Dialer{}, at("7000"), errNoAdapter, "name one", false},
		{"no such adapter", none, Dialer{Adapter: "nonsense"}, at("7000"), dat.ErrProviderNotFound, "nonsense", false},
		{"no such interface", none, Dialer{Adapter: "xdp:nosuch0"}, at("7000"), dat.ErrProviderNotFound, "nosuch0", false},
		{"no such address", none, Dialer{Adapter: "udp:192.0.2.1"}, at("7000"), dat.ErrProviderNotFound, "192.0.2.1", false},
		{"nobody listens", none, Dialer{IA: a}, at("7000"), syscall.ECONNREFUSED, "no service listens at port 7000 of " + p.Address.String(), false},
		{"full", none, ours, at("7001"), syscall.ECONNREFUSED, `"full"`, false},
		{"refused, other version", none, ours, at("7002"), syscall.ECONNREFUSED, "version 7 there, 1 here", false},
		{"other service", none, ours, at("7003"), errNoStream, "check the port", false},
		{"accepted, other version", none, ours, at("7004"), errVersion, "run the same release", false},
		{"small ring", none, ours, at("7005"), errSmall, "at least 512 bytes", false},
		{"reason", none, ours, at("7006"), syscall.ECONNREFUSED, `the service says "no memory"`, false},
		{"nobody there", none, soon, nowhere, syscall.ETIMEDOUT, "is a server running at " + nowhere, true},
		{"deadline in the past", past, ours, at("7000"), context.DeadlineExceeded, "", true},
		{"deadline", nil, Dialer{IA: a}, nowhere, context.DeadlineExceeded, "is a server running at " + nowhere, true},
		{"cancelled", cancelled, ours, at("7000"), context.Canceled, "", false},
	} {
		if c.ctx == nil {
			var cancel context.CancelFunc
			c.ctx, cancel = context.WithTimeout(none, 50*time.Millisecond)
			defer cancel()
		}
		_, err := c.dialer.DialContext(c.ctx, "tcp", c.address)
		var op *net.OpError
		switch {
		case !errors.As(err, &op) || op.Op != "dial":
			t.Errorf("%s: %v is no error of a dial", c.what, err)
		case c.kind != nil && !errors.Is(err, c.kind), !strings.Contains(err.Error(), c.want), op.Timeout() != c.timeout:
			t.Errorf("%s: %v, timeout %t; want %v, %q, timeout %t", c.what, err, op.Timeout(), c.kind, c.want, c.timeout)
		}
	}
}

// TestRefusedAtOnce: at an adapter of the package, a dial to a port at which nobody listens fails sooner than
// dat.Limits.ListenGrace of an adapter with default options.
func TestRefusedAtOnce(t *testing.T) {
	a, b := udp(t)
	at, err := a.Query()
	check(t, err)
	to, err := b.Query()
	check(t, err)
	address := netip.AddrPortFrom(to.Address, 7000).String()
	start := time.Now()
	_, err = Dial(context.Background(), fmt.Sprintf("udp:127.0.0.5 port=%d", at.Port), address)
	own := time.Since(start)
	wantError(t, syscall.ECONNREFUSED, func() error { return err })
	start = time.Now()
	d := Dialer{IA: a}
	_, err = d.DialContext(context.Background(), "", address)
	wantError(t, syscall.ECONNREFUSED, func() error { return err })
	if other := time.Since(start); own >= other {
		t.Errorf("%v, with default options %v", own, other)
	}
}

// TestRefused: a stream service refuses a client of another version, of no version, and with a small ring. It says why.
func TestRefused(t *testing.T) { eachLink(t, testRefused) }

func testRefused(t *testing.T, a, b *dat.IA) {
	lc := ListenConfig{IA: b}
	l, err := lc.Listen(context.Background(), 0)
	check(t, err)
	defer l.Close()
	done := make(chan error)
	go func() {
		_, err := l.Accept()
		done <- err
	}()
	pz, err := a.CreatePZ()
	check(t, err)
	evd, err := a.CreateEVD(8, nil, dat.EVDDTO|dat.EVDConnection)
	check(t, err)
	for private, want := range map[string]string{
		"":                                 errNoStream.Error(),
		"hello":                            errNoStream.Error(),
		otherVersion:                       "version 1 there, 7 here", // the refusal has the version of the service
		string(hello(remoteRing{size: 1})): errSmall.Error(),
	} {
		ep, err := a.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
		check(t, err)
		addr := l.Addr().(*net.TCPAddr).AddrPort()
		check(t, ep.Connect(addr.Addr(), dat.ConnQual(addr.Port()), time.Minute, []byte(private)))
		var ev dat.Event
		_, err = evd.Wait(-1, 1, &ev)
		check(t, err)
		if private == otherVersion {
			if len(ev.PrivateData) <= len(helloMagic) || ev.PrivateData[len(helloMagic)] != helloVersion {
				t.Errorf("hello %q: refused with %q", private, ev.PrivateData)
			}
		} else if err := refusal(ev.PrivateData); !strings.Contains(err.Error(), want) {
			t.Errorf("hello %q: refused with %v; want %q", private, err, want)
		}
	}
	check(t, l.Close())
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
}

// TestListenErrors: each failure to listen says why.
func TestListenErrors(t *testing.T) {
	_, b := sim(t, simlink.Config{})
	lc := ListenConfig{IA: b}
	l, err := lc.Listen(context.Background(), 0)
	check(t, err)
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct {
		config ListenConfig
		port   uint16
		kind   error
		want   string
	}{
		{ListenConfig{}, 1, errNoAdapter, "name one"},
		{ListenConfig{Adapter: "nonsense"}, 1, dat.ErrProviderNotFound, "nonsense"},
		{ListenConfig{IA: b}, port, syscall.EADDRINUSE, "choose another"},
		{ListenConfig{IA: b, Backlog: -1}, 1, syscall.EINVAL, "ListenConfig.Backlog of -1"},
	} {
		_, err := c.config.Listen(context.Background(), c.port)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %v, %q", c.config, err, c.kind, c.want)
		}
	}
}

// TestListenInVain: if another process has the UDP port where clients look for the service, Listen says what to write.
// A port that the name of the adapter has is used as it is.
func TestListenInVain(t *testing.T) {
	const addr = "127.0.0.77"
	other, err := net.ListenPacket("udp", net.JoinHostPort(addr, strconv.Itoa(dat.DefaultPort)))
	check(t, err)
	defer other.Close()
	_, err = Listen(t.Context(), "udp:"+addr, 7000)
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "udp:"+addr+" port=N") {
		t.Errorf("Listen: %v", err)
	}
	l, err := Listen(t.Context(), "udp:"+addr+" port=17999", 7000)
	check(t, err)
	defer l.Close()
	c, err := Dial(t.Context(), "udp:127.0.0.78 peerport=17999", l.Addr().String())
	check(t, err)
	check(t, c.Close())
}

// TestCallErrors: the errors of a stream are those of a TCP connection.
func TestCallErrors(t *testing.T) { eachLink(t, testCallErrors) }

func testCallErrors(t *testing.T, a, b *dat.IA) {
	x, y := newPair(t, a, b)
	p := make([]byte, 1)
	past := time.Now().Add(-time.Second)
	wants := func(what string, want error, timeout bool, call func() error) {
		t.Helper()
		err := call()
		var op *net.OpError
		if !errors.As(err, &op) || !errors.Is(err, want) || op.Timeout() != timeout || op.Source == nil || op.Addr == nil {
			t.Errorf("%s: %v; want %v, timeout %t", what, err, want, timeout)
		}
	}
	read := func() error { _, err := x.Read(p); return err }
	written := func() error { _, err := x.Write(p); return err }
	check(t, x.SetDeadline(past))
	wants("read, deadline in the past", os.ErrDeadlineExceeded, true, read)
	wants("write, deadline in the past", os.ErrDeadlineExceeded, true, written)
	if n, err := x.Read(nil); n != 0 || err != nil {
		t.Errorf("read of no bytes, deadline in the past: %d, %v", n, err)
	}
	check(t, x.SetDeadline(time.Time{}))
	check(t, x.CloseWrite())
	wants("write after CloseWrite", syscall.EPIPE, false, written)
	check(t, y.SetLinger(0))
	check(t, y.Close())
	wants("read, peer has aborted", syscall.ECONNRESET, false, read)
	check(t, x.Close())
	wants("read after Close", net.ErrClosed, false, read)
	wants("write after Close", net.ErrClosed, false, written)
	wants("deadline after Close", net.ErrClosed, false, func() error { return x.SetDeadline(past) })
	wants("CloseWrite after Close", net.ErrClosed, false, x.CloseWrite)
	wants("second Close", net.ErrClosed, false, x.Close)
}

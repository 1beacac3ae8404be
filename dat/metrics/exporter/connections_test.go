package exporter_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat/metrics/exporter"
)

// Idle HTTP connections must stay bounded, and must not keep a scraper out.
func TestIdleConnectionsAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	e := exporter.New()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, l) }()
	const bound = 64
	var conns []net.Conn
	for range 3 * bound {
		c, err := net.Dial("tcp", l.Addr().String())
		ok(t, err)
		defer c.Close()
		ok(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		ok(t, err)
		_, err = c.Read(make([]byte, 1<<16))
		ok(t, err)
		conns = append(conns, c)
	}
	for i, c := range conns[:2*bound] {
		if _, err := io.Copy(io.Discard, c); err != nil { // ends when the server has closed the connection
			t.Fatalf("connection %d of %d is open: %v", i, len(conns), err)
		}
	}
	answer, err := http.Get("http://" + l.Addr().String() + "/metrics")
	ok(t, err)
	ok(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Errorf("beside %d idle connections: %s", bound, answer.Status)
	}
	stop()
	ok(t, <-served)
}

// However many connections one address opens, those of another address must stay open.
func TestOneAddressCannotCloseConnectionsOfOthers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	e := exporter.New()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, l) }()
	ask := func(c net.Conn) {
		t.Helper()
		ok(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		ok(t, err)
		_, err = c.Read(make([]byte, 1<<16))
		ok(t, err)
	}
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	other, err := from.Dial("tcp", l.Addr().String())
	ok(t, err)
	defer other.Close()
	ask(other)
	for range 200 {
		c, err := net.Dial("tcp", l.Addr().String())
		ok(t, err)
		defer c.Close()
		ask(c)
	}
	ask(other)
	stop()
	ok(t, <-served)
}

package exporter

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxConns is the maximum number of open HTTP connections. An idle connection costs about 20 KB and a descriptor.
const maxConns = 64

// connLimit bounds the open connections of a server: a new connection above maxConns closes the oldest one. So idle
// clients cannot keep others from scraping, and a scraper whose connection was closed opens another one.
type connLimit struct {
	mu    sync.Mutex
	conns []net.Conn // open connections, the oldest first
}

// onState is the field ConnState of http.Server.
func (l *connLimit) onState(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		l.conns = append(l.conns, c)
		if len(l.conns) > maxConns {
			_ = l.conns[0].Close()
			l.conns = slices.Delete(l.conns, 0, 1)
		}
	case http.StateClosed, http.StateHijacked:
		l.conns = slices.DeleteFunc(l.conns, func(x net.Conn) bool { return x == c })
	case http.StateActive, http.StateIdle:
	}
}

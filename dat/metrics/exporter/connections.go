package exporter

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxConns is the maximum number of open HTTP connections. An idle connection costs about 20 KB and a descriptor.
const maxConns = 64

// connLimit bounds the open connections of a server: a new connection above maxConns closes the oldest one of the address
// that has most. So the clients of one address cannot keep those of others from scraping, and a scraper whose connection
// was closed opens another one.
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
			i := l.victim()
			_ = l.conns[i].Close()
			l.conns = slices.Delete(l.conns, i, i+1)
		}
	case http.StateClosed, http.StateHijacked:
		l.conns = slices.DeleteFunc(l.conns, func(x net.Conn) bool { return x == c })
	case http.StateActive, http.StateIdle:
	}
}

// victim returns the index of the oldest connection of the address that has most connections.
func (l *connLimit) victim() (oldest int) {
	count, most := make(map[string]int), 0
	for _, c := range l.conns {
		a := addressOf(c)
		count[a]++
		most = max(most, count[a])
	}
	return slices.IndexFunc(l.conns, func(c net.Conn) bool { return count[addressOf(c)] == most })
}

// addressOf returns the address of the client, without its port.
func addressOf(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return "" // clients without addresses count as one
	}
	return host
}

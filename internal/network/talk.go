package network

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// talk is a conversation as streams have it: a client asks with a write with immediate data, and the server answers with
// another. One exchange is outstanding at a time.
type talk struct {
	ends     [2]talkEnd // client and server
	sizes    [2]int     // of question and answer in bytes
	askedAt  int64
	idle     bool // no exchange is outstanding
	took     time.Duration
	finished int // exchanges
}

// talkEnd is one end of a conversation.
type talkEnd struct {
	talk *talk
	host *host
	conn *wire.Conn
	peer *host
}

// talkReceives is the number of receives that each end keeps posted.
const talkReceives = 8

// converse makes a conversation between two hosts.
func (w *World) converse(client, server *host) *talk {
	w.flows++
	t, qual := &talk{idle: true}, uint64(w.flows)
	for i, h := range []*host{client, server} {
		e := &t.ends[i]
		*e = talkEnd{talk: t, host: h, peer: server}
		e.conn = h.host.NewConn(wire.ConnConfig{Zone: regionZone, MaxRecv: talkReceives, MaxRequest: 4, MaxRecvIOV: 1, MaxRequestIOV: 1})
		e.conn.User = e
		for range talkReceives {
			e.receive()
		}
	}
	t.ends[1].peer = client
	server.expects[qual] = t.ends[1].conn
	client.connectTo(server, t.ends[0].conn, qual)
	w.until("establishment", 10*time.Second, func() bool {
		return t.ends[0].conn.State() == wire.Established && t.ends[1].conn.State() == wire.Established
	})
	return t
}

// receive posts a receive.
func (e *talkEnd) receive() {
	_, err := e.conn.PostRecv(nil, 0, 0)
	must(err)
}

// write writes n bytes to the other end.
func (e *talkEnd) write(n int) {
	must(e.conn.PostWriteImm([]wire.Segment{{Context: e.host.region.LocalKey(), Address: regionBase, Length: uint32(n)}}, 0,
		wire.Remote{Key: e.peer.region.RemoteKey(), Addr: regionBase}, 0, wire.Suppress))
	e.host.engine.Kick(e.conn)
	e.host.world.wake(e.host.number, e.host.world.now())
}

// ask begins an exchange.
func (t *talk) ask(now int64) {
	t.askedAt, t.idle = now, false
	t.ends[0].write(t.sizes[0])
}

// completed implements consumer.
func (e *talkEnd) completed(now int64, c *wire.Completion) {
	if c.Op != wire.OpRecvImm {
		return
	}
	e.receive()
	if t := e.talk; e == &t.ends[1] {
		e.write(t.sizes[1])
	} else {
		t.took, t.idle = time.Duration(now-t.askedAt), true
		t.finished++
	}
}

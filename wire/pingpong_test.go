package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// The time of a round trip of 64 bytes at both sides, with the packets that both sides send for it: a message and its
// response, an RDMA write that is answered by an RDMA write, or an RDMA read. In secure mode the packets are sealed.
func BenchmarkPingPong64(b *testing.B) {
	for _, op := range pingPongs {
		for _, secure := range []bool{false, true} {
			b.Run(op.name+map[bool]string{false: "/plain", true: "/aes"}[secure], func(b *testing.B) {
				newPingPong(b, benchLink(1472), secure).run(b, op.roundTrip)
			})
		}
	}
}

var pingPongs = []struct {
	name      string
	roundTrip func(*pingPong)
}{{"send", (*pingPong).send}, {"write", (*pingPong).write}, {"read", (*pingPong).read}}

// TestAnswersCarryAcks: no Ack leaves in a ping-pong, in both modes, because the acknowledgement waits for the answer (RFC
// 1122 §4.2.3.2). This holds for an answer that the consumer posts after it has seen the peer's write in its memory,
// without a completion.
func TestAnswersCarryAcks(t *testing.T) {
	for _, op := range pingPongs {
		for _, secure := range []bool{false, true} {
			p := newPingPong(t, simlink.Config{Delay: time.Microsecond}, secure)
			p.step = func() {
				p.pollAll()
				p.net.Advance(p.net.Now() + int64(time.Microsecond/10))
			}
			op.roundTrip(p)
			const n = 1000
			before := p.acks()
			for range n {
				op.roundTrip(p)
			}
			if got := p.acks() - before; got != 0 {
				t.Errorf("%s, secure %v: %d Acks left in %d round trips", op.name, secure, got, n)
			}
		}
	}
}

// pingPong has two connected nodes, with memory of 64 bytes at both.
type pingPong struct {
	*world
	step   func() // polls both nodes
	conns  [2]*Conn
	memory [2]memory
}

func newPingPong(t testing.TB, cfg simlink.Config, secure bool) *pingPong {
	keys := map[bool]*seal.Limits{false: nil, true: usual}[secure]
	p := &pingPong{world: newSecureWorld(t, cfg, Limits{}, keys, 2)}
	p.step = p.pollAll
	for _, n := range p.nodes {
		n.host.newCipher = nil // AES-128-GCM and not its model
	}
	p.conns[0], p.conns[1] = p.pair(deep)
	p.memory = [2]memory{p.nodes[0].memory(64), p.nodes[1].memory(64)}
	for i := range p.nodes {
		for range 16 { // so many that a receive posted later needs no Ack for its credit
			p.postRecv(i)
		}
	}
	return p
}

func (p *pingPong) run(b *testing.B, roundTrip func(*pingPong)) {
	b.ReportAllocs()
	before := p.packets()
	for b.Loop() {
		roundTrip(p)
	}
	b.ReportMetric(float64(p.packets()-before)/float64(b.N), "packets/op")
}

func (p *pingPong) acks() uint64 {
	return p.nodes[0].eng.stats.AcksSent + p.nodes[1].eng.stats.AcksSent
}

func (p *pingPong) packets() uint64 {
	return p.nodes[0].eng.stats.TxPackets + p.nodes[1].eng.stats.TxPackets
}

func (p *pingPong) postRecv(i int) {
	p.nodes[i].postRecv(p.conns[i], p.memory[i].seg(0, 64), 0)
}

// send sends a message from each node to the other.
func (p *pingPong) send() {
	for i, n := range p.nodes {
		far := p.nodes[1-i]
		n.post(p.conns[i], p.conns[i].PostSend(p.memory[i].seg(0, 64), 0, Suppress))
		for p.drain(far.recv) == 0 {
			p.step()
		}
		p.postRecv(1 - i)
	}
}

// write writes a new number from each node into the memory of the other, which polls on it.
func (p *pingPong) write() {
	for i, n := range p.nodes {
		from, far := p.memory[i], p.memory[1-i].mem
		from.mem[63]++
		n.post(p.conns[i], p.conns[i].PostWrite(from.seg(0, 64), 0, p.memory[1-i].at(0), Suppress))
		for far[63] != from.mem[63] {
			p.step()
		}
	}
}

// read reads the memory of node 1.
func (p *pingPong) read() {
	n := p.nodes[0]
	n.post(p.conns[0], p.conns[0].PostRead(p.memory[0].seg(0, 64), 0, p.memory[1].at(0), 64, 0))
	for p.drain(n.request) == 0 {
		p.step()
	}
}

package wire

import (
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// benchWorld returns two engines that are joined by memory, without a kernel, and driven by one goroutine.
func benchWorld(b *testing.B, mtu int) *world {
	return newWorld(b, benchLink(mtu), 2)
}

func benchLink(mtu int) simlink.Config {
	return simlink.Config{Immediate: true, Unchecked: true, MTU: mtu, FrameSize: mtu, Frames: 512}
}

func (w *world) pollAll() {
	for _, n := range w.nodes {
		n.eng.Poll(Time(w.net.Now()))
	}
}

func (w *world) drain(q *Queue) (n int) {
	var c Completion
	for q.Pop(&c) {
		if c.Status != StatusSuccess {
			w.t.Fatalf("completion %+v", c)
		}
		n++
	}
	return n
}

var deep = ConnConfig{Zone: 1, MaxRecv: 1024, MaxRequest: 1024, MaxRecvIOV: 1, MaxRequestIOV: 1, ReadIn: 4, ReadOut: 4}

// The time of one 64-byte message that shares packets with others, at both sides, until it completes at both.
func BenchmarkMessages64(b *testing.B) {
	w := benchWorld(b, 1472)
	n0, n1 := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(deep)
	src, dst := n0.memory(64), n1.memory(64)
	s, r := src.seg(0, 64), dst.seg(0, 64)
	for range deep.MaxRecv {
		n1.postRecv(cb, r, 0)
	}
	b.ReportAllocs()
	done, posted := 0, 0
	for b.Loop() {
		for ; posted-done >= 512; done += w.drain(n0.request) {
			w.pollAll()
			for range w.drain(n1.recv) {
				n1.postRecv(cb, r, 0)
			}
		}
		n0.post(ca, ca.PostSend(s, 0, 0))
		posted++
	}
}

// The time of one packet with 1400 bytes of RDMA write, at both sides and on the link between them.
func BenchmarkWrite1400(b *testing.B) {
	w := benchWorld(b, 1472)
	n0, n1 := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(deep)
	const size = 1400
	src, dst := n0.memory(size), n1.memory(size)
	benchWrites(b, w, ca, src.seg(0, size), dst.at(0))
}

// benchWrites measures RDMA writes of node 0, with 128 outstanding.
func benchWrites(b *testing.B, w *world, c *Conn, from []Segment, to Remote) {
	n0 := w.nodes[0]
	b.ReportAllocs()
	b.SetBytes(int64(from[0].Length))
	done, posted := 0, 0
	for b.Loop() {
		for ; posted-done >= 128; done += w.drain(n0.request) {
			w.pollAll()
		}
		n0.post(c, c.PostWrite(from, 0, to, 0))
		posted++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/side")
}

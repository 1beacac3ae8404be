package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// fuzzFrames is so small that a new simulated link for each input costs little.
const fuzzFrames = 128

// inject makes a node's engine receive a packet from its peer with header h and a valid checksum.
func (w *world) inject(from, to *node, h *proto.Header, body []byte) {
	w.injectRaw(from, to, packetOf(*h, body))
}

// injectRaw is inject for the bytes of a packet. A packet that is larger than the path MTU gets lost.
func (w *world) injectRaw(from, to *node, packet []byte) {
	p, err := from.link.Resolve(to.addr, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer from.link.Release(p)
	if len(packet) > from.link.PathMTU(p) {
		return
	}
	var b [1]link.Buf
	if from.link.Alloc(b[:]) != 1 {
		w.t.Fatal("no frame")
	}
	b[0].Data, b[0].Path = b[0].Data[:copy(b[0].Data, packet)], p
	from.link.Send(b[:])
	w.net.Advance(w.net.Now() + int64(time.Microsecond))
	to.eng.Poll(Time(w.net.Now()))
}

// A peer that knows the numbers of its connection sends arbitrary packets. Nothing may panic, memory that the peer may
// not write must not change, and all frames must return to the link.
func FuzzHostilePeer(f *testing.F) {
	chunk := make([]byte, proto.WriteSize+8)
	proto.PutWrite(chunk, proto.Last, 8, 0, 0)
	f.Add(byte(proto.Data), byte(0), uint32(0), uint32(0), chunk)
	proto.PutSend(chunk, proto.Last, 8, 0, 0)
	f.Add(byte(proto.Data), byte(1), uint32(0), uint32(0), chunk[:proto.SendSize+8])
	f.Add(byte(proto.Data), byte(1), uint32(0), uint32(0), sendInv(0, 8))
	proto.PutReadReq(chunk[:proto.ReadReqSize], 0, 0, 1<<31, 0)
	f.Add(byte(proto.Data), byte(1), uint32(1), uint32(0), chunk)
	f.Add(byte(proto.Data), byte(1), uint32(0), uint32(0), writeImmChunk(proto.Last, 8, 0, 0, 0, 0))
	f.Add(byte(proto.Data), byte(0), uint32(0), uint32(0), writeImmChunk(proto.Last, 0, 0, 0, 0, 0))
	f.Add(byte(proto.Data), byte(1), uint32(0), uint32(0), atomicChunk(0, 0, 0, 0))
	f.Add(byte(proto.Data), byte(1), uint32(0), uint32(0), atomicAnswer(1, 2))
	f.Add(byte(proto.Ack), byte(2), uint32(0), uint32(0), make([]byte, proto.MaxSACKSize))
	f.Add(byte(proto.Data), byte(0), uint32(0), uint32(0), make([]byte, 1472))
	f.Add(byte(proto.Close), byte(0), uint32(0), uint32(0), make([]byte, proto.GoodbyeSize))
	f.Add(byte(proto.Accept), byte(0), uint32(0), uint32(0), make([]byte, proto.HelloSize))
	f.Add(byte(proto.Connect), byte(0), uint32(0), uint32(0), helloOf(&proto.Hello{CID: 5, Tag: 6, MTU: 1472, Window: minPeerWindow,
		Noise: noiseOption(proto.FormIK), Private: make([]byte, proto.MaxNoiseData)}))
	f.Fuzz(func(t *testing.T, typ, flags byte, psn, ack uint32, body []byte) {
		w := newWorld(t, simlink.Config{Frames: fuzzFrames}, 2)
		a, b := w.nodes[0], w.nodes[1]
		_, cb := w.pair(plain)
		mem := b.memory(64)
		b.postRecv(cb, mem.seg(0, 64), 1)
		b.post(cb, cb.PostRead(mem.seg(0, 64), 2, Remote{}, 64, 0))
		b.post(cb, cb.PostFetchAdd(1, mem.seg(0, 64)[0], 3, Remote{}, 0))
		secret := make([]byte, 64)
		if _, err := b.host.Register(secret, 0x1000, 2, allRights); err != nil {
			t.Fatal(err)
		}
		h := proto.Header{Type: proto.Type(typ & 0xf), Flags: proto.Flags(flags), CID: cb.cid, Tag: cb.tag,
			PSN: cb.recv.nextPSN + 1, Ack: cb.sent.Una, TS: psn, Echo: ack, Credit: cb.flow.creditLimit}
		for i := range 4 { // an early packet, then the next one, then arbitrary ones
			if i == 1 {
				h.PSN--
			} else if i > 1 {
				h.PSN += 1 + 1<<(psn%32)
				h.Ack += 1 << (ack % 32)
			}
			w.inject(a, b, &h, body)
		}
		for _, x := range secret {
			if x != 0 {
				t.Fatal("memory of another zone was written")
			}
		}
		w.run(100 * time.Millisecond)
		for _, n := range w.nodes {
			n.eng.Close()
			if got := n.link.Outstanding(); got != 0 {
				t.Fatalf("%d frames not returned", got)
			}
		}
	})
}

// sendInv returns the only piece of the first message, of n bytes, which invalidates a key.
func sendInv(key uint32, n int) []byte {
	b := make([]byte, proto.SendInvSize+n)
	proto.PutSendInv(b, proto.Last, n, 0, 0, key)
	return b
}

package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// fuzzFrames keeps the memory of a simulated link small enough to make a new one for each input.
const fuzzFrames = 128

// inject has a node's engine receive a packet of its peer: header fields as given, a right checksum.
func (w *world) inject(from, to *node, h *proto.Header, body []byte) {
	p, err := from.link.Resolve(to.addr, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer from.link.Release(p)
	var b [1]link.Buf
	if from.link.Alloc(b[:]) != 1 {
		w.t.Fatal("no frame")
	}
	n := proto.HeaderSize + copy(b[0].Data[proto.HeaderSize:1400], body)
	h.Put(b[0].Data)
	proto.PutTrailer(b[0].Data[n:], proto.CRC(0, b[0].Data[:n]))
	b[0].Data, b[0].Path = b[0].Data[:n+proto.TrailerSize], p
	from.link.Send(b[:])
	w.net.Advance(w.net.Now() + int64(time.Microsecond))
	to.eng.Poll(Time(w.net.Now()))
}

// Whatever a peer that knows the connection sends, nothing panics, memory of others is not touched,
// and all frames come back.
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
	f.Add(byte(proto.Ack), byte(2), uint32(0), uint32(0), make([]byte, proto.SACKSize))
	f.Add(byte(proto.Close), byte(0), uint32(0), uint32(0), make([]byte, proto.GoodbyeSize))
	f.Add(byte(proto.Accept), byte(0), uint32(0), uint32(0), make([]byte, proto.HelloSize))
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
		h := proto.Header{Type: proto.Type(typ & 0xf), Flags: proto.Flags(flags), CID: cb.cid,
			PSN: cb.recv.next + 1, Ack: cb.send.una, TS: psn, Echo: ack, Credit: cb.send.credit}
		for i := range 4 { // out of order, then in order, then anything
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

// sendInv is the only piece of the first message, of n bytes, that makes a key invalid.
func sendInv(key uint32, n int) []byte {
	b := make([]byte, proto.SendInvSize+n)
	proto.PutSendInv(b, proto.Last, n, 0, 0, key)
	return b
}

// States of the connection that FuzzConnectionStates begins with.
const (
	fuzzConnecting = iota
	fuzzAnswered   // Connecting, and Accept has come
	fuzzAccepting
	fuzzActive
	fuzzPassive
	fuzzDraining
	fuzzLingering
	fuzzStates
)

// Steps of a fuzzed script.
const (
	stepPacket = iota
	stepTime
	stepRecv
	stepRequest
	stepDisconnect
	stepDisconnectGracefully
	stepEpoch
	stepPeer // the genuine peer falls silent, or talks again
	fuzzSteps
)

// Bodies of a fuzzed packet.
const (
	bodyRaw = iota
	bodyNone
	bodySend
	bodyWrite
	bodyReadRequest
	bodyReadResponse
	bodyReady
	bodyHello
	bodyGoodbye
	bodyWriteImm
	bodyAtomicRequest
	bodyAtomicResponse
	bodySendInvalidate
	fuzzBodies
)

// fuzzed is one run of FuzzConnectionStates.
type fuzzed struct {
	t      *testing.T
	w      *world
	v, o   *node // whose connection is attacked, and the peer in whose name
	c      *Conn
	open   memory    // that the peer may reach
	keys   [4]uint32 // of open, of two regions that the peer may not write, of a window on open
	win    *Window
	posted int
	script []byte
}

// next takes a byte off the script; 0 when it is over.
func (z *fuzzed) next() byte {
	if len(z.script) == 0 {
		return 0
	}
	b := z.script[0]
	z.script = z.script[1:]
	return b
}

// packet has the connection receive a packet that fits it, as far as the script does not say otherwise.
func (z *fuzzed) packet() {
	c := z.c
	typ, flags := z.next(), z.next()
	now := Time(z.w.net.Now())
	h := proto.Header{Type: proto.Type(typ & 0xf), Flags: proto.Flags(flags), CID: c.cid,
		PSN: c.recv.next + seq.Num(int8(z.next())), Ack: c.send.una + seq.Num(int8(z.next())),
		Credit: c.send.credit + seq.Num(int8(z.next()))<<(typ>>4*2), TS: now.stamp() + uint32(int8(z.next()))}
	switch e := z.next(); {
	case e > 200:
		h.Echo = c.doubt
	case e > 100:
		h.Echo = now.stamp() - uint32(e)<<(e%24)
	}
	if h.Type == proto.Reset {
		h.CID = c.peer
	}
	z.w.inject(z.o, z.v, &h, z.body())
}

// body makes the body of a packet.
func (z *fuzzed) body() []byte {
	c, kind, num, off, n := z.c, z.next(), z.next(), z.next(), int(z.next())
	b := make([]byte, proto.HelloSize+255+proto.SACKSize)
	last := proto.ChunkFlags(kind >> 6)
	kind %= 64
	key, addr := z.keys[num%4]+uint32(num/64), z.open.base+uint64(int64(int8(off)))
	switch kind % fuzzBodies {
	case bodyNone:
		return nil
	case bodySend:
		proto.PutSend(b, last, n, c.recv.msn+seq.Num(num/64), c.recv.off+uint32(off/64))
		return b[:proto.SendSize+n]
	case bodySendInvalidate:
		proto.PutSendInv(b, last, n, c.recv.msn+seq.Num(off/64), c.recv.off, key)
		return b[:proto.SendInvSize+n]
	case bodyWrite:
		proto.PutWrite(b, last, n, key, addr)
		return b[:proto.WriteSize+n]
	case bodyReadRequest:
		proto.PutReadReq(b, key, addr, uint32(n), seq.Num(num))
		return b[:proto.ReadReqSize]
	case bodyReadResponse:
		proto.PutReadResp(b, last, n, seq.Num(c.sq.done.Load())+seq.Num(num/64), uint32(off))
		return b[:proto.ReadRespSize+n]
	case bodyWriteImm:
		proto.PutWriteImm(b, last, n, key, addr, c.recv.msn+seq.Num(num/64), c.recv.immOff+uint32(off/64), uint32(num))
		return b[:proto.WriteImmSize+n]
	case bodyAtomicRequest:
		proto.PutAtomicReq(b, last<<1, key, addr, seq.Num(num), uint64(n), uint64(off))
		return b[:proto.AtomicReqSize]
	case bodyAtomicResponse:
		proto.PutAtomicResp(b, seq.Num(c.sq.done.Load())+seq.Num(num/64), uint64(n))
		return b[:proto.AtomicRespSize]
	case bodyReady:
		proto.PutReady(b)
		return b[:proto.ReadySize]
	case bodyHello:
		hi := proto.Hello{CID: c.peer + uint32(num), MTU: minPacket + uint32(off)<<4, Qual: service,
			ReadIn: uint16(n), Reason: proto.Reason(last), Cookie: uint64(off), Private: b[:n]}
		if hi.CID == 0 {
			hi.CID = 1
		}
		out := make([]byte, proto.HelloSize+n)
		hi.Put(out)
		return out
	case bodyGoodbye:
		g := proto.Goodbye{CID: c.peer, Reason: proto.Reason(num % 12), Op: proto.Op(off % 6), Num: uint32(n % 8)}
		g.Put(b)
		return b[:proto.GoodbyeSize]
	default:
		n = min(n, len(z.script))
		raw := z.script[:n]
		z.script = z.script[n:]
		return raw
	}
}

// count notes a request that was posted.
func (z *fuzzed) count(err error) {
	if err == nil {
		z.posted++
	}
}

// request posts one of the consumer's requests.
func (z *fuzzed) request() {
	kind, n := z.next(), int(z.next())%64
	seg := z.open.seg(0, n)
	flags := WorkFlags(kind>>4) & (Solicited | Fence)
	switch to := (Remote{Key: 1, Addr: 2}); kind % 16 % 9 {
	case 0:
		z.count(z.c.PostSend(seg, 0, flags))
	case 1:
		z.count(z.c.PostWrite(seg, 0, to, flags))
	case 3:
		z.count(z.c.PostWriteImm(seg, 0, to, 7, flags))
	case 4:
		z.count(z.c.PostFetchAdd(1, seg[0], 0, to, flags))
	case 5:
		z.count(z.c.PostCmpSwap(1, 2, seg[0], 0, to, flags))
	case 6:
		z.count(z.c.PostSendInvalidate(seg, 0, 1, flags))
	case 7:
		z.count(z.c.PostReadToWindow(Sink{Key: z.keys[3], Addr: z.open.base, Length: uint64(n)}, 0, to, uint32(n), flags))
	case 8:
		key, err := z.c.PostBind(z.win, z.open.Region, z.open.base, uint32(n), RemoteRead|RemoteWrite, 0, flags)
		z.count(err)
		if err == nil {
			z.keys[3] = key
		}
	default:
		z.count(z.c.PostRead(seg, 0, to, uint32(n), flags))
	}
	z.v.eng.Kick(z.c)
}

// step does the next thing of the script.
func (z *fuzzed) step() {
	switch z.next() % fuzzSteps {
	case stepPacket:
		z.packet()
	case stepTime:
		z.w.run(time.Duration(1) << (z.next() % 32))
	case stepRecv:
		quiet := z.next()&1 != 0
		_, err := z.c.PostRecv(z.open.seg(0, 64), 0, 0)
		z.count(err)
		if !quiet {
			z.v.eng.Kick(z.c)
		}
	case stepRequest:
		z.request()
	case stepDisconnect:
		z.end(false)
	case stepDisconnectGracefully:
		z.end(true)
	case stepEpoch:
		if s := &z.c.send; z.c.alive() && s.una != s.nxt && !s.stepping {
			z.c.stepDown()
		}
	case stepPeer:
		z.o.down = !z.o.down
	}
}

func (z *fuzzed) end(gracefully bool) {
	if err := z.v.eng.Disconnect(z.c, gracefully); err != nil {
		z.t.Fatal(err)
	}
}

// begin makes the connection and takes it to its first state.
func (z *fuzzed) begin(state byte, cfg ConnConfig) {
	w := z.w
	a, b := w.nodes[0], w.nodes[1]
	z.v, z.o = a, b
	if err := b.host.Listen(service, b); err != nil {
		z.t.Fatal(err)
	}
	ca, cb := a.host.NewConn(cfg), b.host.NewConn(cfg)
	z.c = ca
	w.dial(a, b, ca, nil)
	if state == fuzzConnecting {
		return
	}
	w.until("request", time.Second, func() bool { return len(b.arrived) == 1 })
	w.accept(b, cb, nil)
	switch state {
	case fuzzAnswered:
		w.until("answer", time.Second, func() bool { return ca.met })
		return
	case fuzzAccepting:
		z.v, z.o, z.c = b, a, cb
		return
	}
	w.until("establishment", time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
	switch state {
	case fuzzPassive:
		z.v, z.o, z.c = b, a, cb
	case fuzzDraining:
		b.down = true
		mem := a.memory(64)
		z.count(ca.PostWrite(mem.seg(0, 64), 0, Remote{}, 0))
		a.eng.Kick(ca)
		z.end(true)
	case fuzzLingering:
		b.down = true
		z.end(false)
	}
}

// judge checks what must hold whatever has happened: with a silent peer the connection ends by itself,
// every request has completed once, the connection was reported ended once, and nothing is left.
func (z *fuzzed) judge() {
	v, c := z.v, z.c
	z.o.down = true
	limits := &v.host.limits
	z.w.run(limits.NotReady + limits.KeepAlive + 2*limits.GiveUp + 20*time.Second)
	if c.State() != Closed {
		z.t.Fatalf("state %d though the peer is silent", c.State())
	}
	v.eng.Kick(c)
	v.eng.Poll(Time(z.w.net.Now()))
	if n := v.recv.Len() + v.request.Len(); n != z.posted {
		z.t.Errorf("%d completions of %d requests", n, z.posted)
	}
	ends := 0
	for e := (Completion{}); v.connect.Pop(&e); {
		if e.Kind != KindEstablished {
			ends++
		} else if ends > 0 {
			z.t.Error("established after the end")
		}
	}
	if ends != 1 {
		z.t.Errorf("%d ends of one connection", ends)
	}
	for _, r := range v.arrived {
		v.eng.forget(r)
	}
	e := v.eng
	e.recallAll()
	for what, n := range map[string]int{"table entries": e.Connections(), "requests": len(e.requests),
		"half-open": e.opening, "peers": len(e.host.peers.cids), "timers": e.wheel.Len(), "early frames": e.held,
		"paths": v.link.Paths()} {
		if n != 0 {
			z.t.Errorf("%d %s left", n, what)
		}
	}
	e.Close()
	if got := v.link.Outstanding(); got != 0 {
		z.t.Errorf("%d frames not returned", got)
	}
}

// In whatever state a connection is, a peer that knows all its numbers, a consumer and the time may do
// what they like in any order: nothing panics, memory of others stays as it was, and the connection
// ends, once, with everything that belonged to it.
func FuzzConnectionStates(f *testing.F) {
	data, ack := byte(proto.Data), byte(proto.Ack)
	scripts := [][]byte{
		{},
		// A packet out of order, one in order, a SACK of everything, then silence.
		{stepPacket, data, 0, 3, 0, 1, 0, 0, bodyWrite | 64, 0, 0, 8, stepPacket, data, 1, 0, 0, 1, 1, 0, bodySend | 64, 0, 0, 4},
		{stepRequest, 1, 8, stepPacket, ack, byte(proto.HasSACK), 0, 0, 0, 0, 0, bodyRaw, 0, 0, 32,
			255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
			255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, stepTime, 30},
		// A message put off, a receive, the message again, the peer's word that it can go on.
		{stepPacket, data, 0, 0, 0, 0, 0, 0, bodySend | 64, 0, 0, 4, stepRecv, 0, stepPacket, data, 0, 0, 0, 0, 1, 0, bodySend | 64, 0, 0, 4},
		{stepRequest, 0, 8, stepPacket, ack, byte(proto.NoCredit), 0, 0, 0, 1, 0, bodyNone, 0, 0, 0, stepTime, 20,
			stepPacket, ack, byte(proto.NoCredit | proto.NotReady), 0, 0, 0, 2, 0, bodyNone, 0, 0, 0, stepTime, 24,
			stepPacket, ack, byte(proto.NoCredit), 0, 1, 0, 3, 0, bodyNone, 0, 0, 0},
		// Epochs of both ends.
		{stepRequest, 1, 8, stepTime, 10, stepEpoch, stepTime, 20, stepPacket, ack, byte(proto.EpochSeen), 0, 0, 0, 1, 0, bodyNone, 0, 0, 0, stepTime, 20},
		{stepPacket, data, byte(proto.Epoch), 1, 0, 0, 9, 0, bodyReady, 0, 0, 0, stepPacket, data, 0, 0, 0, 0, 1, 0, bodyReady, 0, 0, 0},
		// Path MTU, both roles.
		{stepPacket, byte(proto.Probe), 1, 0, 0, 0, 0, 0, bodyRaw, 0, 0, 0, stepPacket, byte(proto.Probed), 0, 0, 0, 0, 0, 0, bodyRaw, 0, 0, 4, 0, 0, 5, 192},
		// Reads: served, answered, too many.
		{stepRequest, 2, 8, stepTime, 10, stepPacket, data, 0, 0, 1, 0, 0, 0, bodyReadResponse | 64, 0, 0, 8,
			stepPacket, data, 0, 0, 0, 0, 0, 0, bodyReadRequest, 0, 0, 8, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyReadRequest, 64, 0, 8},
		// Writes with immediate data: placed, without a receive, in pieces; posted and put off.
		{stepRecv, 0, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyWriteImm, 0, 0, 8, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyWriteImm | 64, 0, 8, 8,
			stepPacket, data, 0, 0, 0, 0, 1, 0, bodyWriteImm | 64, 0, 0, 0},
		{stepRequest, 3, 8, stepTime, 10, stepPacket, ack, byte(proto.NoCredit | proto.NotReady), 0, 0, 0, 2, 0, bodyNone, 0, 0, 0, stepTime, 24},
		// Atomics: done, denied, too many, answered.
		{stepPacket, data, 0, 0, 0, 0, 0, 0, bodyAtomicRequest, 0, 8, 1, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyAtomicRequest | 128, 0, 8, 1,
			stepPacket, data, 0, 0, 0, 0, 0, 0, bodyAtomicRequest, 1, 0, 1},
		{stepRequest, 4, 8, stepRequest, 5, 8, stepTime, 10, stepPacket, data, 0, 0, 1, 0, 0, 0, bodyAtomicResponse, 0, 0, 9,
			stepPacket, data, 0, 0, 1, 0, 0, 0, bodyAtomicResponse, 0, 0, 9},
		// Windows: bound, used, invalidated, used; a key that is none.
		{stepRequest, 8, 8, stepRecv, 0, stepTime, 10, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyWrite | 64, 3, 0, 8,
			stepRequest, 7, 8, stepPacket, data, 0, 0, 0, 0, 1, 0, bodySendInvalidate | 64, 3, 0, 8,
			stepPacket, data, 0, 0, 0, 0, 2, 0, bodyWrite | 64, 3, 0, 8},
		{stepRequest, 0, 8, stepRequest, 8, 8, stepRequest, 8, 0, stepRecv, 0, stepPacket, data, 0, 0, 0, 0, 0, 0, bodySendInvalidate | 64, 3, 0, 8},
		{stepRequest, 6, 8, stepRequest, 8, 8, stepRequest, 8, 16, stepDisconnect},
		// Ends: Close with blame, Closed, Reset twice, Reject, Accept, Challenge, Connect.
		{stepRequest, 1, 8, stepPacket, byte(proto.Close), 0, 0, 0, 0, 0, 0, bodyGoodbye, 5, 0, 0},
		{stepDisconnect, stepPacket, byte(proto.Closed), 0, 0, 0, 0, 0, 0, bodyNone},
		{stepPacket, byte(proto.Reset), 0, 0, 0, 0, 0, 0, bodyNone, 0, 0, 0, stepPacket, byte(proto.Reset), 0, 0, 0, 0, 0, 201, bodyNone},
		{stepPacket, byte(proto.Challenge), 0, 0, 0, 0, 0, 0, bodyHello, 1, 7, 0, stepPacket, byte(proto.Accept), 0, 0, 0, 0, 0, 0, bodyHello, 1, 60, 4},
		{stepPacket, byte(proto.Reject), 0, 0, 0, 0, 0, 0, bodyHello | 64, 1, 7, 3},
		{stepPacket, byte(proto.Connect), 0, 0, 0, 0, 0, 0, bodyHello, 1, 60, 3, stepTime, 28},
		{stepRequest, 0, 8, stepDisconnectGracefully, stepPeer, stepTime, 28, stepPacket, ack, 0, 0, 1, 1, 0, 0, bodyNone},
	}
	for i, s := range scripts {
		for state := range byte(fuzzStates) {
			f.Add(state, byte(i), s)
		}
	}
	f.Fuzz(func(t *testing.T, state, config byte, script []byte) {
		cfg := plain
		cfg.NoCredit = config&1 != 0
		cfg.ReadIn, cfg.ReadOut = int(config>>1&3), int(config>>3&3)
		w := newWorld(t, simlink.Config{Frames: fuzzFrames, Delay: time.Microsecond}, 2)
		z := &fuzzed{t: t, w: w, script: script[:min(len(script), 512)]}
		z.begin(state%fuzzStates, cfg)
		z.o.down = config&32 == 0
		z.open = z.v.memory(64)
		secret, locked := make([]byte, 64), make([]byte, 64) // of another zone; readable, not writable
		r1, err1 := z.v.host.Register(secret, z.open.base, 2, allRights)
		r2, err2 := z.v.host.Register(locked, z.open.base, 1, LocalRead|LocalWrite|RemoteRead)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		z.keys = [...]uint32{z.open.remote, r1.remote, r2.remote, 0}
		z.win = z.v.host.NewWindow(1, config&64 != 0, nil)
		for len(z.script) > 0 {
			z.step()
		}
		z.judge()
		if z.win.Free(); !z.open.Retire() {
			t.Fatalf("%d windows keep the region after the end", z.open.pins.Load())
		}
		for i := range secret {
			if secret[i]|locked[i] != 0 {
				t.Fatal("memory was written without a right to it")
			}
		}
	})
}

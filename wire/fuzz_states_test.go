package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// States of the connection at the beginning of a script.
const (
	fuzzConnecting = iota
	fuzzAnswered   // Connecting, after Accept has come
	fuzzAccepting
	fuzzActive
	fuzzPassive
	fuzzDraining
	fuzzLingering
	fuzzStates
)

// fuzzed is one run of FuzzConnectionStates.
type fuzzed struct {
	t      *testing.T
	w      *world
	v, o   *node // the attacked node, and the peer whose packets the script builds
	c      *Conn
	peer   *Conn         // the other end
	own    *seal.Session // secure mode: keys of a handshake that the script has finished
	open   memory        // memory that the peer may access
	keys   [4]uint32     // keys of open, of two regions that the peer may not write, and of a window on open
	win    *Window
	posted int
	script []byte
}

// begin makes the connection and brings it to its first state.
func (z *fuzzed) begin(state byte, cfg ConnConfig) {
	w := z.w
	a, b := w.nodes[0], w.nodes[1]
	z.v, z.o = a, b
	if err := b.host.Listen(service, b); err != nil {
		z.t.Fatal(err)
	}
	ca, cb := a.host.NewConn(cfg), b.host.NewConn(cfg)
	z.c, z.peer = ca, cb
	w.dial(a, b, ca, nil)
	if state == fuzzConnecting {
		return
	}
	w.until("request", time.Second, func() bool { return len(b.arrived) == 1 })
	w.accept(b, cb, nil)
	switch state {
	case fuzzAnswered:
		w.until("answer", time.Second, func() bool { return ca.peerKnown })
		return
	case fuzzAccepting:
		z.v, z.o, z.c, z.peer = b, a, cb, ca
		return
	}
	w.until("establishment", time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
	switch state {
	case fuzzPassive:
		z.v, z.o, z.c, z.peer = b, a, cb, ca
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

// The method judge silences the peer and checks what must be true after any script. The connection must end, and its
// end must be reported once. Every request must have completed once. Nothing of the connection may be left in the
// engine.
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
	e.forgetAllRejected()
	for what, n := range map[string]int{"table entries": e.Connections(), "requests": len(e.requests),
		"half-open": e.halfOpen.used, "peers": len(e.host.peers.cids), "timers": e.timers.armed(), "early frames": e.heldFrames,
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

// A script consists of steps of a peer, of a consumer and of the clock, in any order and in any state of a connection.
// The peer knows the IDs, the tags and the packet numbers of the connection. In secure mode it has the keys too, and the
// models of the world check that no plaintext is accepted but those that it has sealed. Nothing may panic, and memory that the
// peer may not write must not change. The end of the connection must be reported exactly once, and then nothing of the
// connection may be left.
func FuzzConnectionStates(f *testing.F) {
	data, ack := byte(proto.Data), byte(proto.Ack)
	scripts := [][]byte{
		{},
		// An early packet, a packet in order, a SACK of everything, then silence.
		{stepPacket, data, 0, 3, 0, 1, 0, 0, bodyWrite | 64, 0, 0, 8, stepPacket, data, 1, 0, 0, 1, 1, 0, bodySend | 64, 0, 0, 4},
		{stepRequest, 1, 8, stepPacket, ack, byte(proto.HasSACK), 0, 0, 0, 0, 0, bodyRaw, 0, 0, 32,
			255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
			255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, stepTime, 30},
		// A message without a receive, a receive, the message again. Then a request, NotReady, and an Ack that ends it.
		{stepPacket, data, 0, 0, 0, 0, 0, 0, bodySend | 64, 0, 0, 4, stepRecv, 0, stepPacket, data, 0, 0, 0, 0, 1, 0, bodySend | 64, 0, 0, 4},
		{stepRequest, 0, 8, stepPacket, ack, byte(proto.NoCredit), 0, 0, 0, 1, 0, bodyNone, 0, 0, 0, stepTime, 20,
			stepPacket, ack, byte(proto.NoCredit | proto.NotReady), 0, 0, 0, 2, 0, bodyNone, 0, 0, 0, stepTime, 24,
			stepPacket, ack, byte(proto.NoCredit), 0, 1, 0, 3, 0, bodyNone, 0, 0, 0},
		// Epoch changes of both ends.
		{stepRequest, 1, 8, stepTime, 10, stepEpoch, stepTime, 20, stepPacket, ack, byte(proto.EpochSeen), 0, 0, 0, 1, 0, bodyNone, 0, 0, 0, stepTime, 20},
		{stepPacket, data, byte(proto.Epoch), 1, 0, 0, 9, 0, bodyReady, 0, 0, 0, stepPacket, data, 0, 0, 0, 0, 1, 0, bodyReady, 0, 0, 0},
		// The search for the path MTU, in both roles.
		{stepPacket, byte(proto.Probe), 1, 0, 0, 0, 0, 0, bodyRaw, 0, 0, 0, stepPacket, byte(proto.Probed), 0, 0, 0, 0, 0, 0, bodyRaw, 0, 0, 4, 0, 0, 5, 192},
		// Reads: served, answered, more than allowed.
		{stepRequest, 2, 8, stepTime, 10, stepPacket, data, 0, 0, 1, 0, 0, 0, bodyReadResponse | 64, 0, 0, 8,
			stepPacket, data, 0, 0, 0, 0, 0, 0, bodyReadRequest, 0, 0, 8, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyReadRequest, 64, 0, 8},
		// Writes with immediate data: placed, without a receive, in pieces; posted and held.
		{stepRecv, 0, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyWriteImm, 0, 0, 8, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyWriteImm | 64, 0, 8, 8,
			stepPacket, data, 0, 0, 0, 0, 1, 0, bodyWriteImm | 64, 0, 0, 0},
		{stepRequest, 3, 8, stepTime, 10, stepPacket, ack, byte(proto.NoCredit | proto.NotReady), 0, 0, 0, 2, 0, bodyNone, 0, 0, 0, stepTime, 24},
		// Atomics: executed, denied, more than allowed, answered.
		{stepPacket, data, 0, 0, 0, 0, 0, 0, bodyAtomicRequest, 0, 8, 1, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyAtomicRequest | 128, 0, 8, 1,
			stepPacket, data, 0, 0, 0, 0, 0, 0, bodyAtomicRequest, 1, 0, 1},
		{stepRequest, 4, 8, stepRequest, 5, 8, stepTime, 10, stepPacket, data, 0, 0, 1, 0, 0, 0, bodyAtomicResponse, 0, 0, 9,
			stepPacket, data, 0, 0, 1, 0, 0, 0, bodyAtomicResponse, 0, 0, 9},
		// Windows: bound, used, invalidated, used again; an invalid key.
		{stepRequest, 8, 8, stepRecv, 0, stepTime, 10, stepPacket, data, 0, 0, 0, 0, 0, 0, bodyWrite | 64, 3, 0, 8,
			stepRequest, 7, 8, stepPacket, data, 0, 0, 0, 0, 1, 0, bodySendInvalidate | 64, 3, 0, 8,
			stepPacket, data, 0, 0, 0, 0, 2, 0, bodyWrite | 64, 3, 0, 8},
		{stepRequest, 0, 8, stepRequest, 8, 8, stepRequest, 8, 0, stepRecv, 0, stepPacket, data, 0, 0, 0, 0, 0, 0, bodySendInvalidate | 64, 3, 0, 8},
		{stepRequest, 6, 8, stepRequest, 8, 8, stepRequest, 8, 16, stepDisconnect},
		// Ends: Close that names a request, Closed, Reset twice, Reject, Accept, Challenge, Connect.
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
			f.Add(state, byte(i)|128, s)
		}
	}
	f.Fuzz(func(t *testing.T, state, config byte, script []byte) {
		cfg := plain
		cfg.NoCredit = config&1 != 0
		cfg.ReadIn, cfg.ReadOut = int(config>>1&3), int(config>>3&3)
		var keys *seal.Limits
		if config&128 != 0 {
			keys = usual
		}
		w := newSecureWorld(t, simlink.Config{Frames: fuzzFrames, Delay: time.Microsecond, Seed: uint64(config >> 5 & 2)}, Limits{}, keys, 2)
		z := &fuzzed{t: t, w: w, script: script[:min(len(script), 512)]}
		z.begin(state%fuzzStates, cfg)
		z.o.down = config&32 == 0
		z.open = z.v.memory(64)
		secret, locked := make([]byte, 64), make([]byte, 64) // memory of another zone, and memory that is only readable
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

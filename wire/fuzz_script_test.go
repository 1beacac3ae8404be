package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
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
	stepPeer // the genuine peer stops or sends again
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

// next takes the next byte of the script, or returns 0 at its end.
func (z *fuzzed) next() byte {
	if len(z.script) == 0 {
		return 0
	}
	b := z.script[0]
	z.script = z.script[1:]
	return b
}

// packet makes the connection receive a packet that is valid except where the script changes it.
func (z *fuzzed) packet() {
	c := z.c
	typ, flags := z.next(), z.next()
	now := Time(z.w.net.Now())
	h := proto.Header{Type: proto.Type(typ & 0xf), Flags: proto.Flags(flags), CID: c.cid, Tag: c.tag,
		PSN: c.recv.nextPSN + seq.Num(int8(z.next())), Ack: c.sent.Una + seq.Num(int8(z.next())),
		Credit: c.flow.creditLimit + seq.Num(int8(z.next()))<<(typ>>4*2), TS: now.Stamp() + uint32(int8(z.next()))}
	e := z.next()
	switch {
	case e > 200:
		h.Echo = c.challenge.begunAt.Stamp()
	case e > 100:
		h.Echo = now.Stamp() - uint32(e)<<(e%24)
	}
	switch h.Type {
	case proto.Reset:
		if h.CID, h.Tag = c.peerCID, c.peerTag; c.keys != nil {
			h.Tag = uint32(c.keys.Sealed() - 1)
		}
	case proto.Closed:
		h.Tag = c.peerTag
	case proto.Connect:
		h.Tag = 0
	default:
	}
	body := z.body()
	if z.w.keys == nil || e > 0 && e <= 100 || !z.secure(&h, body) {
		z.w.inject(z.o, z.v, &h, body)
	}
}

// body returns the body of a packet.
func (z *fuzzed) body() []byte {
	c, kind, num, off, n := z.c, z.next(), z.next(), z.next(), int(z.next())
	b := make([]byte, proto.HelloSize+255+proto.MaxSACKSize)
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
		proto.PutReadResp(b, last, n, seq.Num(c.sq.doneCount.Load())+seq.Num(num/64), uint32(off))
		return b[:proto.ReadRespSize+n]
	case bodyWriteImm:
		proto.PutWriteImm(b, last, n, key, addr, c.recv.msn+seq.Num(num/64), c.recv.immOff+uint32(off/64), uint32(num))
		return b[:proto.WriteImmSize+n]
	case bodyAtomicRequest:
		proto.PutAtomicReq(b, last<<1, key, addr, seq.Num(num), uint64(n), uint64(off))
		return b[:proto.AtomicReqSize]
	case bodyAtomicResponse:
		proto.PutAtomicResp(b, seq.Num(c.sq.doneCount.Load())+seq.Num(num/64), uint64(n))
		return b[:proto.AtomicRespSize]
	case bodyReady:
		proto.PutReady(b)
		return b[:proto.ReadySize]
	case bodyHello:
		hi := proto.Hello{CID: c.peerCID + uint32(num), Tag: c.peerTag | 1, Window: minPeerWindow + uint16(num), UDPPort: uint16(off), MTU: minPacket + uint32(off)<<4, Qual: service,
			ReadIn: uint16(n), Reason: proto.Reason(last), Cookie: uint64(off), Private: b[:n]}
		if hi.CID == 0 {
			hi.CID = 1
		}
		out := make([]byte, hi.Size())
		hi.Put(out)
		return out
	case bodyGoodbye:
		g := proto.Goodbye{CID: c.peerCID, Reason: proto.Reason(num % 12), Op: proto.Op(off % 6), Num: uint32(n % 8)}
		g.Put(b)
		return b[:proto.GoodbyeSize]
	default:
		n = min(n, len(z.script))
		raw := z.script[:n]
		z.script = z.script[n:]
		return raw
	}
}

// count counts a request if it was posted.
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
		z.count(z.c.PostReadToWindow(WindowRange{Key: z.keys[3], Addr: z.open.base, Length: uint64(n)}, 0, to, uint32(n), flags))
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

// step executes the next step of the script.
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
		if z.c.alive() && !z.c.sent.Empty() && !z.c.epoch.changing {
			z.c.changeEpoch()
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

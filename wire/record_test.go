package wire

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

var (
	ends4 = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:17473"), netip.MustParseAddrPort("10.0.0.2:17473")}
	ends6 = [2]netip.AddrPort{netip.MustParseAddrPort("[fd00::1]:17473"), netip.MustParseAddrPort("[fd00::2]:17473")}
)

// datagram is one UDP payload of a capture.
type datagram struct {
	from, to netip.AddrPort
	payload  []byte
	cut      int // number of bytes at the end that were not captured
}

// recorder is a link that records the packets sent over it.
type recorder struct {
	link.Link
	to   netip.AddrPort
	sent *[]datagram
}

func (r *recorder) Send(bufs []link.Buf) {
	var payload []byte
	for i := range bufs {
		payload = append(payload, bufs[i].Data...)
		if bufs[i].Flags&link.More == 0 {
			*r.sent = append(*r.sent, datagram{from: r.Local(), to: r.to, payload: payload})
			payload = nil
		}
	}
	r.Link.Send(bufs)
}

// recordEngines makes two engines use every operation on a bad network. It returns what they sent.
func recordEngines(t *testing.T, ends [2]netip.AddrPort) []datagram {
	t.Helper()
	var sent []datagram
	w := newWorld(t, simlink.Config{Seed: 5, Delay: 5 * time.Microsecond, MTU: 3000, Loss: 0.1}, 0)
	record := func(i int) { w.nodes[i].eng.link = &recorder{Link: w.nodes[i].link, to: ends[1-i], sent: &sent} }
	for i, addr := range ends {
		w.addNode(addr)
		record(i)
	}
	a, b := w.nodes[0], w.nodes[1]
	refused := a.host.NewConn(plain) // no service listens yet
	w.dial(a, b, refused, nil)
	w.until("refusal", 10*time.Second, func() bool { return refused.State() == Closed })
	w.want(a.connect, KindRefused)

	ca, cb := w.pair(plain)
	src, dst := a.memory(1<<16), b.memory(1<<16)
	for i := range src.mem {
		src.mem[i] = byte(i * 7)
	}
	for i := range 16 {
		b.postRecv(cb, dst.seg(i*4096, 4096), uint64(i))
	}
	for i := range 16 {
		size := 1 + i*i*16
		a.post(ca, ca.PostSend(src.seg(0, size), 1, WorkFlags(i%2)*Solicited))
		a.post(ca, ca.PostWrite(src.seg(0, 2*size), 2, dst.at(0), 0))
		a.post(ca, ca.PostRead(src.seg(0, 4*size), 3, dst.at(0), uint32(4*size), 0))
	}
	b.postRecv(cb, nil, 16)
	a.post(ca, ca.PostWriteImm(src.seg(0, 4000), 8, dst.at(0), 0xcafe, Solicited))
	a.post(ca, ca.PostFetchAdd(1<<63, src.seg(0, 8)[0], 9, dst.at(0), 0))
	a.post(ca, ca.PostCmpSwap(1, 1<<63, src.seg(0, 8)[0], 10, dst.at(0), 0))
	w.until("all work", time.Minute, func() bool { return a.request.Len() == 51 && b.recv.Len() == 17 })
	win := b.host.NewWindow(1, false, nil)
	key, err := cb.PostBind(win, dst.Region, dst.base, 64, RemoteRead, 4, Suppress)
	b.post(cb, err)
	b.postRecv(cb, nil, 4)
	a.post(ca, ca.PostSendInvalidate(nil, 4, key, Suppress))
	w.until("the invalidation", time.Minute, func() bool { return b.recv.Len() == 18 })
	w.run(time.Second)
	if err := a.eng.Disconnect(ca, true); err != nil {
		t.Fatal(err)
	}
	w.until("the disconnect", time.Minute, func() bool { return cb.State() == Closed })
	w.want(a.connect, KindDisconnected)
	w.want(b.connect, KindDisconnected)

	ca, _ = w.pair(plain)
	a.post(ca, ca.PostWrite(src.seg(0, 1), 4, Remote{}, 0)) // an invalid key
	w.until("the end", time.Minute, func() bool { return ca.State() == Closed })
	w.want(a.connect, KindBroken)
	w.want(b.connect, KindBroken)

	noCredit := plain
	noCredit.NoCredit = true
	ca, cb = w.pair(noCredit)
	a.post(ca, ca.PostSend(src.seg(0, 100), 5, 0)) // finds no receive
	w.run(time.Millisecond)
	b.postRecv(cb, dst.seg(0, 100), 18)
	w.until("the message", time.Minute, func() bool { return b.recv.Len() == 19 })

	w.until("a larger packet", time.Minute, func() bool { return ca.pmtu.Size > basePacket })
	w.net.SetMTU(ends[0], ends[1], basePacket)
	a.post(ca, ca.PostWrite(src.seg(0, 1<<14), 6, dst.at(0), 0))
	w.until("the write", time.Minute, func() bool { return a.request.Len() == 54 })

	w.restart(b)
	record(1)
	a.post(ca, ca.PostWrite(src.seg(0, 1), 7, dst.at(0), 0))
	w.until("the end", time.Minute, func() bool { return ca.State() == Closed })
	w.run(3 * time.Second)
	return sent
}

// pack returns a packet with a header and a body.
func pack(h proto.Header, body []byte) []byte {
	b := make([]byte, proto.HeaderSize, proto.HeaderSize+len(body)+proto.TrailerSize)
	h.Put(b)
	return withCRC(append(b, body...))
}

// withCRC appends the trailer.
func withCRC(b []byte) []byte {
	return binary.BigEndian.AppendUint32(slices.Clip(b), proto.CRC(0, b))
}

// rarePackets returns packets that engines rarely or never send: every flag and reason, and the largest fields.
func rarePackets() [][]byte {
	full := proto.Header{Type: proto.Data, Flags: 0xff &^ proto.HasSACK, CE: 0x0102, CID: 0xf3040506, PSN: 0xf708090a,
		Ack: 0xfb0c0d0e, Credit: 0xff101112, TS: 0xf3141516, Echo: 0xf718191a, Tag: 0xfb1c1d1e}
	var all [][]byte
	add := func(t proto.Type, flags proto.Flags, body []byte) {
		h := full
		h.Type, h.Flags = t, flags
		all = append(all, pack(h, body))
	}
	add(proto.Data, full.Flags, nil)
	add(proto.Reset, 0xff, nil)
	add(proto.Closed, 0, nil)
	add(proto.Probe, proto.Epoch, make([]byte, 100))
	add(proto.Probe, proto.HasSACK, make([]byte, proto.MaxSACKSize))
	add(proto.Probed, proto.NotReady, []byte{0xf0, 1, 2, 3})
	add(proto.Probed, proto.HasSACK, []byte{0xf0, 1, 2, 3})
	add(proto.Probed, 0, []byte{1, 2, 3})
	for _, n := range []int{proto.SACKSize(0), proto.SACKSize(32), proto.MaxSACKSize, proto.MaxSACKSize + 4, 6, 1} {
		add(proto.Ack, proto.HasSACK, bytes.Repeat([]byte{0xf1}, n))
	}
	add(proto.Ack, proto.HasSACK, nil)
	add(proto.Versions, 0, []byte{2, 3, 250})
	add(proto.Versions, 0, nil)
	for _, version := range []byte{1, 3} {
		for _, typ := range []proto.Type{proto.Versions, proto.Connect, proto.Data} {
			b := pack(full, []byte{2})
			b[0] = version<<4 | byte(typ)
			all = append(all, withCRC(b[:len(b)-proto.TrailerSize]))
		}
	}
	for _, options := range rareOptions {
		add(proto.Connect, 0, withOptions(options...))
	}
	for i, typ := range []proto.Type{proto.Connect, proto.Accept, proto.Reject, proto.Challenge} {
		form := []proto.Form{proto.FormIK, proto.FormNNpsk0}[min(i, 1)]
		add(typ, 0, helloOf(&proto.Hello{CID: 0xf0000001, UDPPort: 1, Noise: noiseOption(form), Private: bytes.Repeat([]byte{7}, proto.MaxNoiseData)}))
		add(typ, 0, helloOf(&proto.Hello{CID: 0xf0000001, ServerKey: make([]byte, 32), Private: make([]byte, proto.MaxNoiseData)}))
	}
	for reason := range proto.ReasonProhibited + 1 {
		hi := proto.Hello{CID: 0xf0000001, Tag: 0xf0000002, MTU: 0xf0000003, Window: 0xfff4, ReadIn: 0xfff5, ReadOut: 0xfff6,
			Reason: reason, Capabilities: 0xf0000007, Qual: 1<<63 + 8, Port: 1<<63 + 9, Cookie: 1<<63 + 10,
			UDPPort: uint16(reason) * 0x1111, Private: bytes.Repeat([]byte{byte(reason)}, int(reason)*34)}
		hello := make([]byte, hi.Size())
		hi.Put(hello)
		hello[19] = 0xee
		add([]proto.Type{proto.Connect, proto.Accept, proto.Reject, proto.Challenge}[reason%4], 0, hello)
		add(proto.Reject, 0, hello)
		bye := make([]byte, proto.GoodbyeSize)
		(&proto.Goodbye{CID: 0xf0000008, Reason: reason, Num: 0xf0000009, Op: proto.Op(reason % 7)}).Put(bye)
		add(proto.Close, 0, bye)
	}
	body := make([]byte, proto.WriteSize+3)
	proto.PutWrite(body, 0xff, 3, 0xf000000a, 1<<64-1)
	body = append(body, make([]byte, proto.ReadReqSize)...)
	proto.PutReadReq(body[proto.WriteSize+3:], 0xf000000b, 1<<64-2, 0xf000000c, 0xf000000d)
	body = append(body, make([]byte, 2*proto.ReadySize)...)
	proto.PutReady(body[len(body)-2*proto.ReadySize:])
	proto.PutReady(body[len(body)-proto.ReadySize:])
	add(proto.Data, 0, body)
	body = make([]byte, proto.WriteImmSize+3)
	proto.PutWriteImm(body, 0xff, 3, 0xf000000e, 1<<64-3, 0xf000000f, 0xf0000010, 0xf0000011)
	body = append(body, make([]byte, proto.AtomicReqSize+proto.AtomicRespSize)...)
	proto.PutAtomicReq(body[proto.WriteImmSize+3:], 0xff, 0xf0000012, 1<<64-4, 0xf0000013, 1<<64-5, 1<<64-6)
	proto.PutAtomicResp(body[proto.WriteImmSize+3+proto.AtomicReqSize:], 0xf0000014, 1<<64-7)
	add(proto.Data, 0, body)
	inv := make([]byte, proto.SendInvSize+2)
	proto.PutSendInv(inv, 0xff, 2, 0xf000000e, 0xf000000f, 0xf0000010)
	add(proto.Data, 0, inv)
	only := make([]byte, proto.SendOnlySize+2)
	proto.PutSendOnly(only, 0xff, 2)
	add(proto.Data, 0, only)
	return all
}

// rareOptions returns Hello options that engines do not send: unknown, mandatory and malformed ones.
var rareOptions = [][]byte{
	{1, 2, 0x44, 0x41},
	{9, 3, 1, 2, 3, 1, 2, 0x44, 0x41},
	{0x81, 4, 1, 2, 3, 4, 0xff, 0},
	{0x82, 4, 1, 2, 3, 4, 0xff, 0},
	append([]byte{0x81, 37}, noiseOption(proto.FormNNpsk0)...),
	append([]byte{9, 0, 0x81, 85}, noiseOption(proto.FormIK)...),
	append([]byte{0x81, 37, 0x12}, noiseOption(proto.FormNNpsk0)[1:]...),
	append([]byte{0x81, 37, 3}, noiseOption(proto.FormNNpsk0)[1:]...),
	slices.Concat([]byte{0x81, 37}, noiseOption(proto.FormNNpsk0), []byte{0x81, 37}, noiseOption(proto.FormNNpsk0)),
	append([]byte{2, 32}, make([]byte, 32)...),
	append([]byte{2, 33}, make([]byte, 33)...),
	slices.Concat([]byte{2, 32}, make([]byte, 32), []byte{2, 32}, make([]byte, 32)),
	{1, 2, 0, 0},
	{1, 2, 0, 7, 1, 2, 0, 8},
	{1, 3, 0, 7, 7},
	{1, 0, 9, 0},
	{9, 3, 1, 2},
	{9},
	append([]byte{9, 254}, make([]byte, 254)...),
	append([]byte{9, 253}, make([]byte, 256)...),
}

// withOptions returns a Hello with the options and four bytes of private data.
func withOptions(options ...byte) []byte {
	b := make([]byte, proto.HelloSize)
	(&proto.Hello{CID: 1, Tag: 2, MTU: minPacket, Window: minPeerWindow}).Put(b)
	binary.BigEndian.PutUint16(b[48:], uint16(len(options)))
	b[51] = 4
	return slices.Concat(b, options, []byte{0xfa, 0xfb, 0xfc, 0xfd})
}

func datagrams(ends [2]netip.AddrPort, payloads [][]byte) []datagram {
	var all []datagram
	for _, p := range payloads {
		all = append(all, datagram{from: ends[0], to: ends[1], payload: p})
	}
	return all
}

package stream

import (
	"net"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// hostile is a peer of a stream that is written with package dat, and sends what it likes.
type hostile struct {
	t    testing.TB
	ia   *dat.IA
	pz   *dat.PZ
	evd  *dat.EVD
	mem  *dat.LMR // a ring for the stream, which takes messages too, the bytes of data messages, and control messages
	out  []byte   // the control messages
	sent int      // offset in out of the next one
	psp  *dat.PSP
	crs  *dat.EVD
	ep   *dat.EP
	ring remoteRing // of the stream
	at   uint64     // offset of the next data message
}

const (
	hostileDepth = 64      // receives, and requests
	hostileRing  = 4 << 10 // bytes of the ring for the stream
	hostileOut   = hostileRing + maxRing
	hostilePort  = 7100
)

func newHostile(t testing.TB, ia *dat.IA) *hostile {
	h := &hostile{t: t, ia: ia}
	var err error
	h.pz, err = ia.CreatePZ()
	check(t, err)
	h.evd, err = ia.CreateEVD(4*hostileDepth, nil, dat.EVDDTO|dat.EVDConnection)
	check(t, err)
	h.crs, err = ia.CreateEVD(8, nil, dat.EVDCR)
	check(t, err)
	mem := make([]byte, hostileOut+4096)
	h.out = mem[hostileOut:]
	h.mem, err = ia.CreateLMR(mem, h.pz, dat.MemLocalRead|dat.MemLocalWrite|dat.MemRemoteWrite)
	check(t, err)
	h.psp, err = ia.CreatePSP(hostilePort, h.crs, dat.PSPConsumer)
	check(t, err)
	return h
}

// open makes the endpoint for the next stream.
func (h *hostile) open() {
	attr := dat.EPAttr{MaxRecvDTOs: hostileDepth, MaxRequestDTOs: hostileDepth, MaxRecvIOV: 1, MaxRequestIOV: 1, MaxRDMAReadOut: 1}
	var err error
	h.ep, err = h.ia.CreateEP(h.pz, dat.EPConfig{RecvEVD: h.evd, RequestEVD: h.evd, ConnectEVD: h.evd, Attr: &attr})
	check(h.t, err)
	for range hostileDepth {
		check(h.t, h.ep.PostRecv([]dat.LMRTriplet{h.mem.Segment(0, 64)}, 0, 0))
	}
	h.at = 0
}

func (h *hostile) hello() []byte {
	return hello(remoteRing{h.mem.RMRContext(), h.mem.Address(), hostileRing})
}

// dial connects to a stream service.
func (h *hostile) dial(addr *net.TCPAddr) {
	h.open()
	a := addr.AddrPort()
	check(h.t, h.ep.Connect(a.Addr(), dat.ConnQual(a.Port()), time.Minute, h.hello()))
	h.established()
}

// accept accepts a stream.
func (h *hostile) accept() {
	h.open()
	var ev dat.Event
	_, err := h.crs.Wait(-1, 1, &ev)
	check(h.t, err)
	q, err := ev.CR.Query()
	check(h.t, err)
	h.ring, err = parseHello(q.PrivateData)
	check(h.t, err)
	check(h.t, ev.CR.Accept(h.ep, h.hello()))
	h.established()
}

func (h *hostile) established() {
	var ev dat.Event
	_, err := h.evd.Wait(-1, 1, &ev)
	check(h.t, err)
	if ev.Number != dat.EventEstablished {
		h.t.Fatal(ev.Number)
	}
	if len(ev.PrivateData) > 0 {
		h.ring, err = parseHello(ev.PrivateData)
		check(h.t, err)
	}
}

// poll takes what has come.
func (h *hostile) poll() {
	for ev := (dat.Event{}); h.evd.Dequeue(&ev) == nil; {
	}
}

// end ends the connection and takes its last events.
func (h *hostile) end() {
	check(h.t, h.ep.Free())
	h.poll()
}

// send sends the bytes as a control message. Posts fail when the stream has ended the connection, as it should.
func (h *hostile) send(b ...byte) {
	if h.sent += len(b); h.sent > len(h.out) {
		h.sent = len(b)
	}
	copy(h.out[h.sent-len(b):], b) // the engine may still send the messages before
	_ = h.ep.PostSend([]dat.LMRTriplet{h.mem.Segment(hostileOut+h.sent-len(b), len(b))}, 0, 0)
	h.poll()
}

func (h *hostile) control(m control) { h.send(m.append(nil)...) }

// write sends n bytes to an offset of the stream's ring, with a credit.
func (h *hostile) write(offset uint64, n int, imm uint32) {
	to := dat.RMRTriplet{Context: h.ring.context, Address: h.ring.address + offset, Length: uint64(n)}
	_ = h.ep.PostRDMAWriteImm([]dat.LMRTriplet{h.mem.Segment(hostileRing, n)}, 0, to, imm, 0)
	h.poll()
}

// data sends n bytes as a correct peer does, if the ring has room.
func (h *hostile) data(n int) {
	offset := h.at % uint64(h.ring.size)
	n = min(n, int(uint64(h.ring.size)-offset))
	if h.at+uint64(n) > uint64(h.ring.size) && raceEnabled {
		return // it overwrites bytes that the stream may be reading, which is a data race by intention
	}
	h.write(offset, n, 0)
	h.at += uint64(n)
}

// overwrite writes the first bytes of the ring without a message.
func (h *hostile) overwrite() {
	if h.at > 0 && raceEnabled {
		return // as in data
	}
	to := dat.RMRTriplet{Context: h.ring.context, Address: h.ring.address, Length: 8}
	_ = h.ep.PostRDMAWrite([]dat.LMRTriplet{h.mem.Segment(hostileRing, 8)}, 0, to, 0)
}

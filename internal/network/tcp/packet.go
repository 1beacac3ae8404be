package tcp

import (
	"encoding/binary"

	"github.com/datxdp/datxdp/link"
)

// A segment is its number and padding. An acknowledgement is the number of the next segment in order, a byte of flags,
// the number of listed segments, and the segments that have arrived since the acknowledgement before.
const (
	offSeq    = 0
	offFlags  = 8
	offListed = 9
	offList   = 10
	// maxListed is the largest number of segments in an acknowledgement.
	maxListed = 4
	ackSize   = offList + 8*maxListed
)

const flagECE = 1

// ack is an acknowledgement.
type ack struct {
	next   int64 // all segments before have arrived
	ece    bool  // congestion experienced
	listed [maxListed]int64
	n      int // segments in listed
}

func (a *ack) put(b []byte) []byte {
	b = b[:ackSize]
	clear(b)
	binary.BigEndian.PutUint64(b[offSeq:], uint64(a.next))
	if a.ece {
		b[offFlags] = flagECE
	}
	b[offListed] = byte(a.n)
	for i, seq := range a.listed[:a.n] {
		binary.BigEndian.PutUint64(b[offList+8*i:], uint64(seq))
	}
	return b
}

func parseAck(b []byte) (a ack) {
	a.next, a.ece, a.n = int64(binary.BigEndian.Uint64(b[offSeq:])), b[offFlags] == flagECE, int(b[offListed])
	for i := range a.n {
		a.listed[i] = int64(binary.BigEndian.Uint64(b[offList+8*i:]))
	}
	return a
}

// end is one end of a connection.
type end struct {
	link link.Link
	path link.Path
	bufs [64]link.Buf
}

// receive calls take for each packet that waits, and returns the number of packets.
func (e *end) receive(take func(b *link.Buf)) (packets int) {
	n := e.link.Recv(e.bufs[:])
	for i := range e.bufs[:n] {
		take(&e.bufs[i])
	}
	e.link.Free(e.bufs[:n])
	return n
}

// send sends one packet. It reports false if the link has no frame.
func (e *end) send(fill func(b []byte) []byte) bool {
	var b [1]link.Buf
	if e.link.Alloc(b[:]) == 0 {
		return false
	}
	b[0].Data, b[0].Path = fill(b[0].Data), e.path
	e.link.Send(b[:])
	return true
}

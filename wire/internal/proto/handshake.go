package proto

import "encoding/binary"

// Reason says why a connection was refused or ended.
type Reason uint8

// Reasons in Reject and Close.
const (
	ReasonNone       Reason = iota // Close: an ordinary disconnect
	ReasonPeer                     // Reject: the consumer said no
	ReasonNoListener               // Reject: no service has that qualifier
	ReasonBacklog                  // Reject: the service's queue is full
	ReasonResources                // Reject: out of connections
	ReasonAccess                   // Close: remote key, range, right or zone was wrong
	ReasonLength                   // Close: a message was longer than its receive
	ReasonNotReady                 // Close: a message came without a receive
	ReasonProtocol                 // Close: a packet made no sense
	ReasonTimeout                  // Close: the peer was silent too long
	ReasonLocal                    // Close: the closing side's own operation failed
	ReasonMemory                   // Close: registered memory of the closing side cannot be accessed
	ReasonUnfinished               // Close: a message held a shared receive for too long
)

// MaxPrivateData is the largest private data in bytes that a handshake packet carries.
const MaxPrivateData = 512

// Hello is the body of Connect, Challenge, Accept and Reject, after the header.
type Hello struct {
	CID      uint32 // the sender's name of the connection
	MTU      uint32 // largest packet (header to trailer) the sender can receive
	Qual     uint64 // Connect: the service asked for
	Port     uint64 // Connect: the requester's own port qualifier
	ReadIn   uint16 // RDMA reads the sender serves at one time
	ReadOut  uint16 // RDMA reads the sender wants to have outstanding
	Reason   Reason // Reject
	Cookie   uint64 // Challenge: to be returned; Connect: as returned, 0 at first
	Private  []byte // private data; Parse leaves it pointing into the packet
	Reserved uint8
}

// HelloSize is the size of a Hello without its private data.
const HelloSize = 40

// Put writes h and its private data into b, which must hold them, and returns how many bytes it took.
func (h *Hello) Put(b []byte) int {
	_ = b[HelloSize-1+len(h.Private)]
	binary.BigEndian.PutUint32(b, h.CID)
	binary.BigEndian.PutUint32(b[4:], h.MTU)
	binary.BigEndian.PutUint64(b[8:], h.Qual)
	binary.BigEndian.PutUint64(b[16:], h.Port)
	binary.BigEndian.PutUint16(b[24:], h.ReadIn)
	binary.BigEndian.PutUint16(b[26:], h.ReadOut)
	b[28], b[29] = byte(h.Reason), 0
	binary.BigEndian.PutUint16(b[30:], uint16(len(h.Private)))
	binary.BigEndian.PutUint64(b[32:], h.Cookie)
	return HelloSize + copy(b[HelloSize:], h.Private)
}

// Parse reads a Hello that is all of b. It reports false if the lengths do not fit.
func (h *Hello) Parse(b []byte) bool {
	if len(b) < HelloSize {
		return false
	}
	h.CID = binary.BigEndian.Uint32(b)
	h.MTU = binary.BigEndian.Uint32(b[4:])
	h.Qual = binary.BigEndian.Uint64(b[8:])
	h.Port = binary.BigEndian.Uint64(b[16:])
	h.ReadIn = binary.BigEndian.Uint16(b[24:])
	h.ReadOut = binary.BigEndian.Uint16(b[26:])
	h.Reason, h.Reserved = Reason(b[28]), b[29]
	h.Cookie = binary.BigEndian.Uint64(b[32:])
	n := int(binary.BigEndian.Uint16(b[30:]))
	h.Private = b[HelloSize:]
	return n == len(h.Private) && n <= MaxPrivateData
}

// Goodbye is the body of Close, after the header.
type Goodbye struct {
	CID    uint32 // the sender's name of the connection, for Closed to name
	Reason Reason
	Num    uint32 // the operation that failed: message number or read number, see Op
	Op     Op     // 0: none
}

// ProbedSize is the size of the body of Probed: the size of the Probe that arrived, header to trailer.
const ProbedSize = 4

// PutProbed writes the body of Probed into the first ProbedSize bytes of b.
func PutProbed(b []byte, size uint32) { binary.BigEndian.PutUint32(b, size) }

// ProbedLen reads the body of Probed from the first ProbedSize bytes of b.
func ProbedLen(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// GoodbyeSize is the size of a Goodbye.
const GoodbyeSize = 12

// Put writes g into the first GoodbyeSize bytes of b.
func (g *Goodbye) Put(b []byte) {
	p := (*[GoodbyeSize]byte)(b)
	binary.BigEndian.PutUint32(p[0:], g.CID)
	binary.BigEndian.PutUint32(p[4:], g.Num)
	p[8], p[9], p[10], p[11] = byte(g.Reason), byte(g.Op), 0, 0
}

// Parse reads a Goodbye that is all of b.
func (g *Goodbye) Parse(b []byte) bool {
	if len(b) != GoodbyeSize {
		return false
	}
	g.CID = binary.BigEndian.Uint32(b)
	g.Num = binary.BigEndian.Uint32(b[4:])
	g.Reason, g.Op = Reason(b[8]), Op(b[9])
	return true
}

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
	ReasonVersion                  // the peer speaks other versions of the protocol only
	ReasonOption                   // Reject, or Close in answer to Accept: an option must be understood and is not
	ReasonPort                     // the peer's host says that its UDP port has no owner
)

// MaxPrivateData and MaxOptions are the largest private data and options in bytes that a handshake packet carries.
const (
	MaxPrivateData = 512
	MaxOptions     = 256
)

// Hello is the body of Connect, Challenge, Accept and Reject, after the header.
type Hello struct {
	CID          uint32 // the sender's name of the connection
	Tag          uint32 // what the peer puts into the packets of this connection; never 0
	MTU          uint32 // largest packet (header to trailer) the sender can receive
	Window       uint16 // packets after the next one that the sender can keep, and tell of in a SACK
	ReadIn       uint16 // RDMA reads the sender serves at one time
	ReadOut      uint16 // RDMA reads the sender wants to have outstanding
	Reason       Reason // Reject
	Capabilities uint32 // bits of what the sender can do; both ends do what both can
	Qual         uint64 // Connect: the service asked for
	Port         uint64 // Connect: the requester's own port qualifier
	Cookie       uint64 // Challenge: to be returned; Connect: as returned, 0 at first
	UDPPort      uint16 // option: where the sender receives; 0: at the port that the packet left from
	Private      []byte // private data; Parse leaves it pointing into the packet

	// Refused is an option that has to be understood and is not; 0: none. Parse sets it.
	Refused uint8
}

// HelloSize is the size of a Hello without options and private data, MaxHelloSize that of the largest one.
const (
	HelloSize    = 52
	MaxHelloSize = HelloSize + MaxOptions + MaxPrivateData
)

// Options follow the fixed part of a Hello as {type, length, value}. A receiver skips those that it does
// not know, unless the upper bit of the type is set: then it refuses the connection.
const (
	optionUDPPort   = 1
	optionMandatory = 0x80
	optionHead      = 2
	udpPortSize     = 2
)

// Caller reads whose a Connect is, in the first bytes of it that an ICMP message quotes: CID and tag of the Hello.
func Caller(b []byte) (cid, tag uint32, ok bool) {
	if len(b) < HeaderSize+8 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(b[HeaderSize:]), binary.BigEndian.Uint32(b[HeaderSize+4:]), true
}

// optionsSize is the size of the options that Put writes.
func (h *Hello) optionsSize() int {
	if h.UDPPort == 0 {
		return 0
	}
	return optionHead + udpPortSize
}

// Size is the size of h with its options and private data.
func (h *Hello) Size() int { return HelloSize + h.optionsSize() + len(h.Private) }

// Put writes h, its options and its private data into b, which must hold them, and returns how many bytes it took.
func (h *Hello) Put(b []byte) int {
	n := h.optionsSize()
	_ = b[HelloSize-1+n+len(h.Private)]
	binary.BigEndian.PutUint32(b, h.CID)
	binary.BigEndian.PutUint32(b[4:], h.Tag)
	binary.BigEndian.PutUint32(b[8:], h.MTU)
	binary.BigEndian.PutUint16(b[12:], h.Window)
	binary.BigEndian.PutUint16(b[14:], h.ReadIn)
	binary.BigEndian.PutUint16(b[16:], h.ReadOut)
	b[18], b[19] = byte(h.Reason), 0
	binary.BigEndian.PutUint32(b[20:], h.Capabilities)
	binary.BigEndian.PutUint64(b[24:], h.Qual)
	binary.BigEndian.PutUint64(b[32:], h.Port)
	binary.BigEndian.PutUint64(b[40:], h.Cookie)
	binary.BigEndian.PutUint16(b[48:], uint16(n))
	binary.BigEndian.PutUint16(b[50:], uint16(len(h.Private)))
	if o := b[HelloSize:]; n > 0 {
		o[0], o[1] = optionUDPPort, udpPortSize
		binary.BigEndian.PutUint16(o[optionHead:], h.UDPPort)
	}
	return HelloSize + n + copy(b[HelloSize+n:], h.Private)
}

// Parse reads a Hello that is all of b. It reports false if the lengths do not fit.
func (h *Hello) Parse(b []byte) bool {
	if len(b) < HelloSize {
		return false
	}
	h.CID = binary.BigEndian.Uint32(b)
	h.Tag = binary.BigEndian.Uint32(b[4:])
	h.MTU = binary.BigEndian.Uint32(b[8:])
	h.Window = binary.BigEndian.Uint16(b[12:])
	h.ReadIn = binary.BigEndian.Uint16(b[14:])
	h.ReadOut = binary.BigEndian.Uint16(b[16:])
	h.Reason = Reason(b[18])
	h.Capabilities = binary.BigEndian.Uint32(b[20:])
	h.Qual = binary.BigEndian.Uint64(b[24:])
	h.Port = binary.BigEndian.Uint64(b[32:])
	h.Cookie = binary.BigEndian.Uint64(b[40:])
	options, private := int(binary.BigEndian.Uint16(b[48:])), int(binary.BigEndian.Uint16(b[50:]))
	rest := b[HelloSize:]
	if options > MaxOptions || private > MaxPrivateData || options+private != len(rest) {
		return false
	}
	h.Private = rest[options:]
	return h.parseOptions(rest[:options])
}

// parseOptions reads the options, which are all of b.
func (h *Hello) parseOptions(b []byte) bool {
	h.UDPPort, h.Refused = 0, 0
	for len(b) > 0 {
		if len(b) < optionHead || len(b) < optionHead+int(b[1]) {
			return false
		}
		kind, value := b[0], b[optionHead:optionHead+int(b[1])]
		b = b[optionHead+len(value):]
		switch {
		case kind == optionUDPPort:
			if len(value) != udpPortSize || h.UDPPort != 0 {
				return false
			}
			if h.UDPPort = binary.BigEndian.Uint16(value); h.UDPPort == 0 {
				return false
			}
		case kind&optionMandatory != 0 && h.Refused == 0:
			h.Refused = kind
		}
	}
	return true
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

package proto

import "encoding/binary"

// Reason says why a connection was refused or closed.
type Reason uint8

// Reasons in Reject and Close.
const (
	ReasonNone       Reason = iota // Close: ordinary disconnect
	ReasonPeer                     // Reject: the consumer rejected the request
	ReasonNoListener               // Reject: no service has the qualifier
	ReasonBacklog                  // Reject: the backlog of the service is full
	ReasonResources                // Reject: no connection place left
	ReasonAccess                   // Close: wrong remote key, range, right or zone
	ReasonLength                   // Close: a message was longer than its receive
	ReasonNotReady                 // Close: a message found no receive
	ReasonProtocol                 // Close: a packet violated the protocol
	ReasonTimeout                  // Close: the peer was silent too long
	ReasonLocal                    // Close: an operation failed on the side that closes
	ReasonMemory                   // Close: registered memory of the side that closes is inaccessible
	ReasonUnfinished               // Close: an unfinished message held a shared receive for too long
	ReasonVersion                  // local only: the peer speaks other protocol versions
	ReasonOption                   // Reject, or Close after Accept: a mandatory option is unknown
	ReasonPort                     // local only: the peer's kernel reports that its UDP port is closed
)

// MaxPrivateData and MaxOptions bound the private data and the options of a handshake packet, in bytes.
const (
	MaxPrivateData = 512
	MaxOptions     = 256
)

// Hello is the body of Connect, Challenge, Accept and Reject.
type Hello struct {
	CID          uint32 // the sender's ID of the connection
	Tag          uint32 // verification tag that the peer must put into packets of this connection; never 0
	MTU          uint32 // largest packet in bytes, header to trailer, that the sender can receive
	Window       uint16 // receive window: packets after the next one that the sender can hold and name in a SACK
	ReadIn       uint16 // RDMA reads that the sender serves at a time
	ReadOut      uint16 // RDMA reads that the sender wants outstanding
	Reason       Reason // Reject only
	Capabilities uint32 // features that the sender supports; both ends use the common ones
	Qual         uint64 // Connect: qualifier of the service
	Port         uint64 // Connect: port qualifier of the requester
	Cookie       uint64 // Challenge: cookie; Connect: cookie of the last Challenge, 0 before
	UDPPort      uint16 // option: port at which the sender receives; 0: as the header says
	Private      []byte // private data; after Parse a slice of the packet

	// Refused is the type of an unknown mandatory option, or 0. Parse sets it.
	Refused uint8
}

// HelloSize is the size of a Hello without options and private data in bytes, MaxHelloSize that of the largest one.
const (
	HelloSize    = 52
	MaxHelloSize = HelloSize + MaxOptions + MaxPrivateData
)

// Options follow the fixed part of a Hello, each as {type, length, value}. A receiver refuses the connection if it does
// not know an option whose type has the highest bit set. It ignores other unknown options.
const (
	optionUDPPort   = 1
	optionMandatory = 0x80
	optionHead      = 2
	udpPortSize     = 2
)

// Caller returns CID and tag of the Hello in a Connect. It needs only the first bytes, which an ICMP message quotes.
func Caller(b []byte) (cid, tag uint32, ok bool) {
	if len(b) < HeaderSize+8 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(b[HeaderSize:]), binary.BigEndian.Uint32(b[HeaderSize+4:]), true
}

// optionsSize returns the size in bytes of the options that Put writes.
func (h *Hello) optionsSize() int {
	if h.UDPPort == 0 {
		return 0
	}
	return optionHead + udpPortSize
}

// Size returns the size of h in bytes, with options and private data.
func (h *Hello) Size() int { return HelloSize + h.optionsSize() + len(h.Private) }

// Put writes h with options and private data into b, which must be long enough. It returns the number of bytes written.
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

// Parse reads the Hello in b. It reports false if the lengths in it do not match the length of b.
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

// parseOptions reads the options in b. It reports false if they are malformed.
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

// Goodbye is the body of Close.
type Goodbye struct {
	CID    uint32 // the sender's ID of the connection, which Closed returns
	Reason Reason
	Num    uint32 // number of the failed operation: message number or read number, depending on Op
	Op     Op     // kind of the failed operation; 0: none
}

// ProbedSize is the size of the body of Probed in bytes. The body is the size of the Probe that arrived.
const ProbedSize = 4

// PutProbed writes the body of Probed into the first ProbedSize bytes of b.
func PutProbed(b []byte, size uint32) { binary.BigEndian.PutUint32(b, size) }

// ProbedLen reads the body of Probed from the first ProbedSize bytes of b.
func ProbedLen(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// GoodbyeSize is the size of a Goodbye in bytes.
const GoodbyeSize = 12

// Put writes g into the first GoodbyeSize bytes of b.
func (g *Goodbye) Put(b []byte) {
	p := (*[GoodbyeSize]byte)(b)
	binary.BigEndian.PutUint32(p[0:], g.CID)
	binary.BigEndian.PutUint32(p[4:], g.Num)
	p[8], p[9], p[10], p[11] = byte(g.Reason), byte(g.Op), 0, 0
}

// Parse reads the Goodbye in b. It reports false if b has another length.
func (g *Goodbye) Parse(b []byte) bool {
	if len(b) != GoodbyeSize {
		return false
	}
	g.CID = binary.BigEndian.Uint32(b)
	g.Num = binary.BigEndian.Uint32(b[4:])
	g.Reason, g.Op = Reason(b[8]), Op(b[9])
	return true
}

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
	ReasonTimeout                  // Close: the peer was silent, or not ready, for too long
	ReasonLocal                    // Close: an operation failed on the side that closes
	ReasonMemory                   // Close: registered memory of the side that closes is inaccessible
	ReasonUnfinished               // Close: an unfinished message held a shared receive for too long
	ReasonVersion                  // local only: the peer speaks other protocol versions
	ReasonOption                   // Reject, or Close after Accept: a mandatory option is unknown
	ReasonPort                     // local only: the peer's kernel reports that its UDP port is closed
	ReasonSecure                   // Reject: the server accepts secure connections only
	ReasonKeyLimit                 // local only: the key of the connection must not be used any longer
	ReasonHandshake                // local only: the server has not answered message 1
	ReasonDenied                   // Close: the policy of the side that closes does not permit the connection any more
	ReasonEnded                    // local only: the peer process has ended, or started again
	ReasonNoHost                   // local only: the peer's host is unreachable
	ReasonNoNet                    // local only: there is no route to the peer's network
	ReasonProhibited               // local only: a filter or a route prohibits packets to the peer
)

// Limits of the variable part of a Hello in bytes. With the Noise option the private-data field has a part of a Noise
// message, which may be longer than private data.
const (
	MaxPrivateData = 512
	MaxNoiseData   = 640 // private-data field of a Hello with the Noise option
	MaxOptions     = 256
	MaxVariable    = 768 // options and private-data field
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
	// ServerKey is an option: in a Challenge the server's public key, in a Connect as many zeros, which ask for the key.
	// It has PublicKeySize bytes, or it is nil. After Parse it is a slice of the packet.
	ServerKey []byte
	// Noise is an option: the value that Noise.Append makes, of at most MaxNoiseSize bytes; nil: none. After Parse it is a
	// slice of the packet of any length, which may be 0.
	Noise   []byte
	Private []byte // private data; after Parse a slice of the packet

	// Refused is the type of a mandatory option that Parse does not know, or 0. Parse sets it.
	Refused uint8
}

// NoGroups is the bit of Capabilities that asks the peer to send single packets: the sender of the Hello receives a group
// of packets as one.
const NoGroups = 1 << 0

// HelloSize is the size of a Hello without options and private data in bytes, MaxHelloSize that of the largest one.
const (
	HelloSize    = 52
	MaxHelloSize = HelloSize + MaxVariable
)

// Options follow the fixed part of a Hello, each as {type, length, value}. A receiver refuses the connection if it does
// not know an option whose type has the highest bit set. It ignores other unknown options.
const (
	optionUDPPort   = 0x01
	optionServerKey = 0x02
	optionNoise     = 0x81
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
func (h *Hello) optionsSize() (n int) {
	if h.UDPPort != 0 {
		n += optionHead + udpPortSize
	}
	if h.ServerKey != nil {
		n += optionHead + len(h.ServerKey)
	}
	if h.Noise != nil {
		n += optionHead + len(h.Noise)
	}
	return n
}

// putOptions writes the options into b, in the order of their types.
func (h *Hello) putOptions(b []byte) {
	if h.UDPPort != 0 {
		b = putOption(b, optionUDPPort, []byte{byte(h.UDPPort >> 8), byte(h.UDPPort)})
	}
	if h.ServerKey != nil {
		b = putOption(b, optionServerKey, h.ServerKey)
	}
	if h.Noise != nil {
		putOption(b, optionNoise, h.Noise)
	}
}

// putOption writes an option into b and returns the rest of b.
func putOption(b []byte, kind byte, value []byte) (rest []byte) {
	b[0], b[1] = kind, byte(len(value))
	return b[optionHead+copy(b[optionHead:], value):]
}

// Plain reports whether an adapter in plaintext mode knows all mandatory options of h.
func (h *Hello) Plain() bool { return h.Refused == 0 && h.Noise == nil }

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
	h.putOptions(b[HelloSize : HelloSize+n])
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
	if options > MaxOptions || private > MaxNoiseData || options+private != len(rest) || len(rest) > MaxVariable {
		return false
	}
	h.Private = rest[options:]
	return h.parseOptions(rest[:options]) && (private <= MaxPrivateData || h.Noise != nil)
}

// optionsOf returns the options of a Hello that Parse has accepted.
func optionsOf(b []byte) []byte {
	return b[HelloSize : HelloSize+int(binary.BigEndian.Uint16(b[48:]))]
}

// parseOptions reads the options in b. It reports false if they are malformed.
func (h *Hello) parseOptions(b []byte) bool {
	h.UDPPort, h.ServerKey, h.Noise, h.Refused = 0, nil, nil, 0
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
		case kind == optionServerKey:
			if len(value) != PublicKeySize || h.ServerKey != nil {
				return false
			}
			h.ServerKey = value
		case kind == optionNoise:
			if h.Noise != nil {
				return false
			}
			h.Noise = value
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
	// Num is the number of the failed read if Op is OpReadResp. Otherwise it is the number of operations of the packet Ack
	// before the one that failed.
	Num uint32
	Op  Op // OpReadResp: the response to a read failed; OpSend: a message was not finished; otherwise 0
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

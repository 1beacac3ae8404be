package lease

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is the version of the protocol. Client and daemon need the same one. The header and the body of Failed are the
// same in every version.
const Version = 1

// Kinds of messages.
type kind uint16

const (
	kindLease    kind = 1
	kindAdopt    kind = 2
	kindListen   kind = 3
	kindUnlisten kind = 4
	kindRoute    kind = 5
	kindList     kind = 6
	kindGranted  kind = 128
	kindDone     kind = 129
	kindRouted   kind = 130
	kindListed   kind = 131
	kindFailed   kind = 132
)

// errMalformed is the error of a message that is not one of the protocol.
var errMalformed = errors.New("malformed message")

// header begins each message. All numbers are big-endian. An answer has the Sequence of its request.
type header struct {
	Version  uint16
	Kind     kind
	Sequence uint32
}

const headerSize = 8

// Bodies of messages. Each kind has one size. Texts are padded with zeros; IPv4 addresses are IPv4-mapped, and the
// unspecified address stands for none.
type (
	requestBody struct {
		Interface            [maxInterface]byte
		Mode                 uint8
		Addr                 [16]byte
		Frames, FrameSize    uint32
		Memory               uint64
		Rings                Rings
		Engines, SourcePorts uint32
	}
	adoptBody  struct{ Lease uint32 }
	listenBody struct{ Qualifier uint64 }
	routeBody  struct{ To [16]byte }
	listBody   struct{ After uint32 }
	doneBody   struct{}
	routedBody struct {
		From [16]byte
		MTU  uint32
	}
	failedBody struct {
		Status uint16
		Text   [maxText]byte
	}
	listedBody struct{ Leases [listPage]heldBody }
	heldBody   struct {
		Lease     uint32
		Interface [maxInterface]byte
		Mode      uint8
		UID, GID  uint32
		PID       int32
		Bytes     uint64
		Since     int64 // seconds since 1970
	}
	prefixBody struct {
		Addr [16]byte
		Bits uint8
	}
	grantBody struct {
		Lease                uint32
		Interface            [maxInterface]byte
		Ifindex              uint32
		Mode                 uint8
		Attach               [maxAttach]byte
		MTU                  uint32
		MAC                  [6]byte
		Addr                 [16]byte
		Addresses            [maxAddresses]prefixBody
		Port                 uint16
		SourcePorts          [maxPorts]uint16
		FirstEngine, Engines uint32
		Frames, FrameSize    uint32
		Memory               uint64
		Rings                Rings
		MultiBuffer          uint8
		Sockets              uint8
	}
)

// newBody returns an empty body for a kind, or nil.
func newBody(k kind) any {
	switch k {
	case kindLease:
		return new(requestBody)
	case kindAdopt:
		return new(adoptBody)
	case kindListen, kindUnlisten:
		return new(listenBody)
	case kindRoute:
		return new(routeBody)
	case kindList:
		return new(listBody)
	case kindGranted:
		return new(grantBody)
	case kindDone:
		return new(doneBody)
	case kindRouted:
		return new(routedBody)
	case kindListed:
		return new(listedBody)
	case kindFailed:
		return new(failedBody)
	default:
		return nil
	}
}

// encode returns a message of this version.
func encode(k kind, sequence uint32, body any) []byte {
	b, err := binary.Append(make([]byte, 0, maxMessage), binary.BigEndian, header{Version, k, sequence})
	if err == nil {
		b, err = binary.Append(b, binary.BigEndian, body)
	}
	if err != nil {
		panic(err) // the type of the body has no fixed size
	}
	return b
}

// decode reads a message. The header is valid if it can be read at all; the error is ErrVersion if it has another version.
// A Failed of another version has a body too.
func decode(b []byte) (h header, body any, err error) {
	if _, err := binary.Decode(b, binary.BigEndian, &h); err != nil {
		return h, nil, fmt.Errorf("%w: %d bytes", errMalformed, len(b))
	}
	if h.Version != Version && h.Kind != kindFailed {
		return h, nil, fmt.Errorf("%w: this end has %d, the other %d", ErrVersion, Version, h.Version)
	}
	body = newBody(h.Kind)
	if body == nil {
		return h, nil, fmt.Errorf("%w: kind %d", errMalformed, h.Kind)
	}
	if len(b)-headerSize != binary.Size(body) {
		return h, nil, fmt.Errorf("%w: kind %d of %d bytes", errMalformed, h.Kind, len(b))
	}
	_, err = binary.Decode(b[headerSize:], binary.BigEndian, body)
	return h, body, err
}

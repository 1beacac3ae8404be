package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"github.com/datxdp/datxdp/dat"
)

// The messages of a stream. A data message is an RDMA write with immediate data, which is a credit for the other
// direction. An RDMA write of 0 bytes is a credit without data, for at least one message or byte. All other control
// messages are sends of at most controlSize bytes: the kind of the message in one byte, and then its fields in network
// byte order.
const (
	controlRing   = iota + 1 // context u32, address u64, size u32: the receiver has another ring
	controlSwitch            // the bytes after this message go into the ring of the last controlRing
	controlEnd               // no bytes follow (CloseWrite)

	controlSize = 20
)

// control is a control message.
type control struct {
	kind uint8
	ring remoteRing
}

// credit is what a receiver has taken since its last credit. As immediate data, the upper 5 bits are messages, and the
// lower consumedBits bits are consumed.
type credit struct {
	messages uint32 // data messages
	consumed uint64 // bytes that the application has read; at most the size of two rings
}

const consumedBits = 27

func (c credit) immediate() uint32 { return c.messages<<consumedBits | uint32(c.consumed) }

func parseCredit(immediate uint32) credit {
	return credit{messages: immediate >> consumedBits, consumed: uint64(immediate & (1<<consumedBits - 1))}
}

// remoteRing is the address of a ring in the peer's memory.
type remoteRing struct {
	context uint32
	address uint64
	size    uint32
}

func (r remoteRing) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, r.context)
	b = binary.BigEndian.AppendUint64(b, r.address)
	return binary.BigEndian.AppendUint32(b, r.size)
}

const remoteRingSize = 16

func parseRemoteRing(b []byte) (remoteRing, error) {
	if len(b) != remoteRingSize {
		return remoteRing{}, errProtocol
	}
	r := remoteRing{binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint32(b[12:])}
	if r.size < minPeerRing {
		return remoteRing{}, errSmall
	}
	return r, nil
}

// append appends the encoded message to b.
func (m *control) append(b []byte) []byte {
	b = append(b, m.kind)
	if m.kind == controlRing {
		b = m.ring.append(b)
	}
	return b
}

var errProtocol = errors.New("the peer violated the stream protocol: run the same release at both ends")

// parseControl decodes a control message.
func parseControl(b []byte) (m control, err error) {
	if len(b) == 0 {
		return m, errProtocol
	}
	m.kind, b = b[0], b[1:]
	switch {
	case m.kind == controlRing:
		m.ring, err = parseRemoteRing(b)
	case (m.kind == controlSwitch || m.kind == controlEnd) && len(b) == 0:
	default:
		err = errProtocol
	}
	return m, err
}

// The hello is the private data of a connection request and of its accept: magic, version, and the receive ring.
const (
	helloMagic   = "DXST"
	helloVersion = 1
)

func hello(r remoteRing) []byte {
	return r.append(append([]byte(helloMagic), helloVersion))
}

var (
	errNoStream = errors.New("the other side is no stream of package stream: check the port")
	errVersion  = errors.New("the other side has another version of the stream protocol: run the same release at both ends")
	errSmall    = fmt.Errorf("the ring of the other side is too small: it must have at least %d bytes", minPeerRing)
)

// minPeerRing is the size in bytes of the smallest ring that a peer may have.
const minPeerRing = 512

// parseMagic checks the first bytes of a hello or refusal, and returns the others.
func parseMagic(b []byte) ([]byte, error) {
	switch n := len(helloMagic); {
	case len(b) < n+1 || string(b[:n]) != helloMagic:
		return nil, errNoStream
	case b[n] != helloVersion:
		return nil, fmt.Errorf("%w: version %d there, %d here", errVersion, b[n], helloVersion)
	default:
		return b[n+1:], nil
	}
}

func parseHello(b []byte) (remoteRing, error) {
	b, err := parseMagic(b)
	if err != nil {
		return remoteRing{}, err
	}
	return parseRemoteRing(b)
}

// maxReason is the number of bytes of the text in a refusal; it is below the private data that every adapter carries.
const maxReason = 128

// refuse rejects a request. The private data is that of a hello, with the reason in place of the ring.
func refuse(cr *dat.CR, reason error) {
	text := reason.Error()
	_ = cr.Reject(append(append([]byte(helloMagic), helloVersion), text[:min(len(text), maxReason)]...))
}

// refusal returns the error for the private data of a refusal.
func refusal(b []byte) error {
	text, err := parseMagic(b)
	switch {
	case len(b) == 0:
		return failed(syscall.ECONNREFUSED, "the service was closed")
	case err == errNoStream:
		return failed(syscall.ECONNREFUSED, "the service says %q; %v", b, err)
	case err != nil:
		return failed(syscall.ECONNREFUSED, "%v", err)
	}
	return failed(syscall.ECONNREFUSED, "the service says %q", text)
}

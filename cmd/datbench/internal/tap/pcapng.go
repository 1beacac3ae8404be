package tap

import (
	"encoding/binary"
	"io"
	"time"
)

// These are the parts of the pcapng format (draft-ietf-opsawg-pcapng) for one Ethernet interface. A block consists of
// its type, its length, a body padded to four bytes, and its length again. Numbers are in the byte order of the
// section.
const (
	blockSection   = 0x0A0D0D0A
	blockInterface = 1
	blockPacket    = 6

	sectionMagic    = 0x1A2B3C4D
	linkEthernet    = 1
	optionResol     = 9 // interface option: unit of timestamps, 10^-value seconds
	optionFlags     = 2 // packet option
	flagInbound     = 1
	flagOutbound    = 2
	nanosecondResol = 9
)

// ngWriter writes blocks. It has one buffer and is not safe for concurrent use.
type ngWriter struct {
	w   io.Writer
	buf []byte
}

var order = binary.LittleEndian

// header begins the file: one section of unknown length and one interface without snap length.
func (n *ngWriter) header() error {
	body := order.AppendUint32(nil, sectionMagic)
	body = order.AppendUint16(body, 1) // version 1.0
	body = order.AppendUint16(body, 0)
	body = order.AppendUint64(body, ^uint64(0))
	if err := n.block(blockSection, body); err != nil {
		return err
	}
	body = order.AppendUint16(nil, linkEthernet)
	body = append(body, 0, 0, 0, 0, 0, 0) // reserved, snap length
	body = appendOption(body, optionResol, nanosecondResol)
	return n.block(blockInterface, appendOption(body, 0))
}

// packet writes one packet.
func (n *ngWriter) packet(at time.Time, direction uint32, frame []byte) error {
	ns := uint64(at.UnixNano())
	b := order.AppendUint32(n.buf[:0], 0) // interface 0
	b = order.AppendUint32(b, uint32(ns>>32))
	b = order.AppendUint32(b, uint32(ns))
	b = order.AppendUint32(b, uint32(len(frame)))
	b = order.AppendUint32(b, uint32(len(frame)))
	b = pad(append(b, frame...))
	b = appendOption(b, optionFlags, order.AppendUint32(nil, direction)...)
	b = appendOption(b, 0)
	n.buf = b
	return n.block(blockPacket, b)
}

func (n *ngWriter) block(kind uint32, body []byte) error {
	size := uint32(len(body) + 12)
	var head [8]byte
	order.PutUint32(head[:], kind)
	order.PutUint32(head[4:], size)
	for _, part := range [][]byte{head[:], body, head[4:]} {
		if _, err := n.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// appendOption appends an option. Code 0 without a value ends the list.
func appendOption(b []byte, code uint16, value ...byte) []byte {
	b = order.AppendUint16(b, code)
	b = order.AppendUint16(b, uint16(len(value)))
	return pad(append(b, value...))
}

func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

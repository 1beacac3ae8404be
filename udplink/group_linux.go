package udplink

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// maxCut is the largest number of packets in a group. Linux cuts a message into at most 64 packets (UDP_MAX_SEGMENTS, 128
// since 6.9), and before 5.16 it counts headers as data.
const maxCut = 63

// maxGroup is the largest size in bytes of a message, less the largest IP and UDP headers.
const maxGroup = 1<<16 - 1 - 48

// offload says which offloads of the kernel the socket uses.
type offload struct {
	segment bool // UDP_SEGMENT, Linux 4.18
	merge   bool // UDP_GRO, Linux 5.0
}

// open finds out what the kernel has.
//
// System calls: getsockopt, setsockopt.
func (o *offload) open(fd int) {
	_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	o.segment = err == nil
	o.merge = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
}

// String returns the names of the offloads in use.
func (o offload) String() string {
	var names []string
	if o.segment {
		names = append(names, "UDP_SEGMENT")
	}
	if o.merge {
		names = append(names, "UDP_GRO")
	}
	return strings.Join(names, " ")
}

// groups are the messages of one flush. A message is one packet, or a group: packets of one path and of equal size that
// were sent in a row, the last of which may be shorter. The kernel cuts a group into its packets (UDP_SEGMENT), as late
// as it can: if the device can do it, the packets cross the whole stack as one.
type groups struct {
	tx       [maxBatch]mmsghdr
	info     [maxBatch]groupInfo
	iov      [maxBatch]unix.Iovec           // of each packet
	names    [maxBatch]sockaddr             // destination of each reply
	control  [maxBatch][segmentControl]byte // size of the packets of each group
	messages int
	packets  int

	single [1]mmsghdr // a packet of a group that the kernel refused
}

// groupInfo describes a message.
type groupInfo struct {
	way     *path // nil for a reply
	first   int   // index of its first packet
	packets int
	size    int  // of each packet but the last one
	bytes   int  // of all packets
	closed  bool // the last packet is shorter, or the only one leaves by itself
}

// segmentControl is the space in bytes for the control message with the size of the packets, on 64-bit machines.
const segmentControl = 24

func (g *groups) open() {
	for i := range g.control {
		putControl(g.control[i][:], controlKind{unix.IPPROTO_UDP, unix.UDP_SEGMENT}, 2)
	}
}

func (g *groups) full() bool { return g.packets == maxBatch }

func (g *groups) reset() { g.messages, g.packets = 0, 0 }

// add appends a packet to the last group, or makes it a message of its own. Without segment, no other packet joins it.
func (g *groups) add(data []byte, way *path, segment bool) {
	if segment && g.join(data, way) {
		return
	}
	g.begin(data, way, &way.name)
	g.info[g.messages-1].closed = !segment
}

// addReply makes a reply a message. port replaces the port of the address, unless it is 0.
func (g *groups) addReply(data []byte, to *sockaddr, port uint16) {
	name := &g.names[g.messages]
	*name = *to
	if port != 0 {
		name.setPort(port)
	}
	g.begin(data, nil, name)
}

// join appends a packet to the last group, if it fits.
func (g *groups) join(data []byte, way *path) bool {
	if g.messages == 0 || way.alone {
		return false
	}
	i := g.messages - 1
	m := &g.info[i]
	if m.way != way || m.closed || len(data) == 0 || len(data) > m.size || m.bytes+len(data) > maxGroup || m.packets == maxCut {
		return false
	}
	g.put(data)
	m.bytes += len(data)
	m.closed = len(data) < m.size
	h := &g.tx[i].hdr
	if m.packets++; m.packets == 2 {
		binary.NativeEndian.PutUint16(g.control[i][unix.SizeofCmsghdr:], uint16(m.size))
		h.Control = &g.control[i][0]
		h.SetControllen(unix.CmsgSpace(2))
	}
	h.SetIovlen(m.packets)
	return true
}

// begin makes a packet a new message.
func (g *groups) begin(data []byte, way *path, name *sockaddr) {
	i := g.messages
	g.messages++
	g.info[i] = groupInfo{way: way, first: g.packets, packets: 1, size: len(data), bytes: len(data)}
	h := &g.tx[i].hdr
	h.Name, h.Namelen = &name[0], name.size()
	h.Iov = &g.iov[g.packets]
	h.SetIovlen(1)
	h.Control = nil
	h.SetControllen(0)
	g.put(data)
}

func (g *groups) put(data []byte) {
	v := &g.iov[g.packets]
	g.packets++
	v.Base = nil
	if len(data) > 0 {
		v.Base = &data[0]
	}
	v.SetLen(len(data))
}

// alone returns packet k of message i as a message.
func (g *groups) alone(i, k int) []mmsghdr {
	m := &g.single[0]
	m.hdr = g.tx[i].hdr
	m.hdr.Iov = &g.iov[g.info[i].first+k]
	m.hdr.SetIovlen(1)
	m.hdr.Control = nil
	m.hdr.SetControllen(0)
	return g.single[:]
}

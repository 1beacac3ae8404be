package xdp

import (
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

// fakeKernel is the other end of a socket's rings, in plain memory.
type fakeKernel struct {
	s    *Socket
	rx   producer[desc]
	tx   consumer[desc]
	fill consumer[uint64]
	comp producer[uint64]

	batch     uint32          // slots that one kick moves
	answers   []syscall.Errno // results of the next kicks; a kick with EBUSY also drops a packet
	sent      [][]byte        // packets as transmitted
	partial   []byte
	kicks     int
	rxWakeups int
}

// newFake returns a socket whose kernel is simulated by the test. Our address is 10.0.0.1, and the peer's address is
// 10.0.0.2.
func newFake(t testing.TB, mtu int) *fakeKernel {
	t.Helper()
	return newFakeNIC(t, mtu, 0)
}

// newFakeNIC is newFake in zero-copy mode, with a NIC whose receive ring has nic slots; nic 0 means copy mode.
func newFakeNIC(t testing.TB, mtu, nic int) *fakeKernel {
	t.Helper()
	o := DefaultOptions()
	o.Frames, o.TxRing, o.CompletionRing, o.RxRing, o.FillRing = 512, 128, 128, 256, 256
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	local := netip.MustParseAddr("10.0.0.1")
	k := &fakeKernel{batch: 32}
	k.s = &Socket{
		host: host{
			mac: [6]byte{2, 0, 0, 0, 0, 1}, local: netip.AddrPortFrom(local, DefaultPort), mtu: mtu,
			served: serving("10.0.0.1/24", "fd00::1/64"), router: fixedRouter{&fixedHop{mac: [6]byte{2, 0, 0, 0, 0, 2}, mtu: mtu}},
		},
		fd: -1, selfTraffic: selfTraffic{loop: make([]link.Buf, 0, 64)},
	}
	s := k.s
	s.event, s.sg, s.zc, s.idleTx = -1, true, nic > 0, 2
	s.level, s.txMax = newFillLevel(uint32(o.rxFrames()), uint32(nic)), uint32(o.TxRing)
	s.umem = newUmem(make([]byte, (o.Frames+nic)*o.FrameSize), nil, uint32(o.FrameSize))
	s.pool = newPool(uint32(o.Frames + nic))
	k.rx, s.rx = newRings[desc](uint32(o.RxRing))
	s.tx, k.tx = newRings[desc](uint32(o.TxRing))
	s.fill, k.fill = newRings[uint64](uint32(o.FillRing))
	k.comp, s.comp = newRings[uint64](uint32(o.CompletionRing))
	s.kick, s.wakeRx = k.kick, k.wakeRx
	s.refill()
	s.caps = s.describe(&o, Copy)
	return k
}

// wakeRx counts the wakeups for the fill ring.
func (k *fakeKernel) wakeRx() syscall.Errno {
	k.rxWakeups++
	return 0
}

// kick transmits a batch, as sendto does in copy mode.
func (k *fakeKernel) kick(bool) syscall.Errno {
	k.kicks++
	if len(k.answers) > 0 {
		e := k.answers[0]
		k.answers = k.answers[1:]
		if e == unix.EBUSY { // the packet's frame is completed, but the packet is not sent
			k.transmit(1)
			k.sent = k.sent[:len(k.sent)-1]
		}
		return e
	}
	if k.transmit(k.batch); k.tx.refresh() > 0 {
		return unix.EAGAIN
	}
	return 0
}

func (k *fakeKernel) transmit(n uint32) {
	n = min(n, k.tx.refresh())
	addrs := make([]uint64, n)
	for i := range n {
		d := k.tx.slot(i)
		f, off, _ := k.s.umem.frame(d.addr)
		k.partial = append(k.partial, k.s.umem.bytes(f, off, d.len)...)
		if d.options&pktContd == 0 {
			k.sent, k.partial = append(k.sent, k.partial), nil
		}
		addrs[i] = d.addr
	}
	k.tx.release(n)
	if got := k.comp.reserve(n); got < n {
		panic("the completion ring is full")
	}
	for i, a := range addrs {
		k.comp.put(uint32(i), a)
	}
	k.comp.submit(n)
}

// deliver puts one packet, split into the given pieces, into the rx ring.
func (k *fakeKernel) deliver(t testing.TB, pieces ...[]byte) {
	t.Helper()
	for i, p := range pieces {
		k.piece(t, p, i < len(pieces)-1)
	}
}

func (k *fakeKernel) piece(t testing.TB, p []byte, more bool) {
	t.Helper()
	if k.fill.refresh() == 0 || k.rx.reserve(1) == 0 {
		t.Fatalf("nothing to receive into: %v", k.s.pool.count)
	}
	d := desc{addr: k.fill.slot(0) + rxHeadRoom, len: uint32(len(p))}
	if more {
		d.options = pktContd
	}
	f, off, _ := k.s.umem.frame(d.addr)
	copy(k.s.umem.bytes(f, off, d.len), p)
	k.fill.release(1)
	k.rx.put(0, d)
	k.rx.submit(1)
}

// raw puts any descriptor into the rx ring, valid or not.
func (k *fakeKernel) raw(d desc) {
	k.rx.reserve(1)
	k.rx.put(0, d)
	k.rx.submit(1)
}

// pieces splits a packet at the given offsets.
func pieces(b []byte, cuts ...int) (out [][]byte) {
	from := 0
	for _, c := range append(cuts, len(b)) {
		out = append(out, b[from:c])
		from = c
	}
	return out
}

func (k *fakeKernel) peer() netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), DefaultPort)
}

// complete completes all packets in the tx ring without reading them.
func (k *fakeKernel) complete() {
	n := k.tx.refresh()
	k.comp.reserve(n)
	for i := range n {
		k.comp.put(i, k.tx.slot(i).addr)
	}
	k.tx.release(n)
	k.comp.submit(n)
}

// refresh delivers n packets of the given size in bytes. Their content is what the frames contain.
func (k *fakeKernel) refresh(n, size uint32) {
	n = min(n, k.fill.refresh())
	k.rx.reserve(n)
	for i := range n {
		k.rx.put(i, desc{addr: k.fill.slot(i) + rxHeadRoom, len: size})
	}
	k.fill.release(n)
	k.rx.submit(n)
}

// payloadOf returns n bytes in which adjacent bytes differ.
func payloadOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

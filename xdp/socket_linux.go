package xdp

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/exclusive"
	"github.com/datxdp/datxdp/internal/park"
	"github.com/datxdp/datxdp/internal/pathtable"
	"github.com/datxdp/datxdp/link"
)

// Socket is one AF_XDP socket on one receive queue. It implements link.Link. The package comment says which goroutine
// may call which method.
type Socket struct {
	// Used by the owner only.
	frameStore
	ringSet
	kernelCalls
	skip bool // the rest of a packet with too many fragments is being discarded
	selfTraffic

	// Set at open.
	host
	grants
	paths pathtable.Table[path]

	counters counters
	refusals refusals
	stall    atomic.Uint32 // one of the stall constants

	waiting
	fd   int
	maps [][]byte
	kernelCounters

	opening
	health health
	ended  atomic.Pointer[error] // why the device no longer works; nil while it does
}

// grants are the features that the kernel has granted.
type grants struct {
	caps link.Caps
	sg   bool // packets of several frames
	zc   bool // zero-copy mode
}

var (
	_ link.Link       = (*Socket)(nil)
	_ link.Reporter   = (*Socket)(nil)
	_ link.Originator = (*Socket)(nil)
)

// Values of stall: why the tx ring still holds slots that only a system call transmits.
const (
	flowing uint32 = iota // it holds none
	pending               // the kernel accepts no more for now: try again
	down                  // the interface is down or gone: packets are dropped
)

// place identifies the queue of a socket.
type place struct {
	ifindex, queue int
	name           string
	mode           Mode // fastest mode to request
	ring           int  // slots of the NIC's receive ring; they hold frames in zero-copy mode
}

func (p place) String() string { return fmt.Sprintf("%s queue %d", p.name, p.queue) }

// openQueue opens a socket in the fastest mode that is granted. It tries zero-copy first, with additional frames for
// the slots of the NIC's receive ring. The other modes do not need these frames.
func openQueue(p place, h host, o *Options) (*Socket, error) {
	if p.mode == Auto && p.ring > 0 {
		p.mode = ZeroCopy
		s, err := openSocket(p, h, o)
		if !errors.Is(err, link.ErrUnsupported) {
			return s, err
		}
		p.mode = Copy
	}
	if p.mode != ZeroCopy {
		p.ring = 0
	}
	return openSocket(p, h, o)
}

// openSocket opens a socket. It fills the fill ring before the bind, because some drivers never look again at a fill
// ring that was empty at the bind.
func openSocket(p place, h host, o *Options) (s *Socket, err error) {
	s = &Socket{host: h, fd: -1}
	s.event, s.txMax, s.place, s.options = -1, uint32(o.TxRing), p, *o
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("xdp: %v: %w", p, err), s.undo())
			s = nil
		}
	}()
	if s.event, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return s, fmt.Errorf("eventfd: %w", err)
	}
	if s.sleeper, err = park.Open(s.event); err != nil {
		return s, err
	}
	if err = s.mapFrames(o, o.Frames+p.ring); err != nil {
		return s, err
	}
	if err = s.createSocket(p); err != nil {
		return s, err
	}
	s.caps = s.describe(o, p.mode)
	return s, nil
}

// createSocket creates the kernel socket, which uses the frames as its UMEM, and binds it to the queue. The kernel
// requires this order: register the UMEM, set the ring sizes, map the rings, fill the fill ring, bind.
func (s *Socket) createSocket(p place) (err error) {
	o := &s.options
	if s.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return explainSocket(err)
	}
	exclusive.Add(s.fd)
	if err = s.register(); err != nil {
		return err
	}
	if err = s.size(o); err != nil {
		return err
	}
	if err = s.mapRings(o); err != nil {
		return err
	}
	s.level = newFillLevel(uint32(o.rxFrames()), uint32(p.ring))
	s.refill()
	if err = s.bind(p); err != nil {
		return err
	}
	s.tune(o)
	return nil
}

// mapFrames maps the frames. They stay mapped until Close.
func (s *Socket) mapFrames(o *Options, frames int) error {
	size := frames * o.FrameSize
	mem, err := mapUmem(size, s.memory)
	if err != nil {
		return err
	}
	s.maps = append(s.maps, mem)
	s.umem, s.pool = newUmem(mem[:size:size], s.memory, uint32(o.FrameSize)), newPool(uint32(frames))
	if s.memory != nil {
		s.lent = make([]uint32, 0, o.TxRing)
	}
	s.loop = make([]link.Buf, 0, min(loopFrames, o.ownerFrames()))
	return nil
}

// register registers the frames as the socket's UMEM.
func (s *Socket) register() error {
	mem := s.maps[0]
	reg := unix.XDPUmemReg{Addr: umemAddr(mem), Len: uint64(len(mem)), Size: s.umem.size}
	if err := setOption(s.fd, unix.SOL_XDP, unix.XDP_UMEM_REG, &reg); err != nil {
		if errors.Is(err, unix.ENOBUFS) {
			return fmt.Errorf("XDP_UMEM_REG: %d bytes exceed the limit of locked memory, raise it (ulimit -l): %w", len(mem), err)
		}
		return fmt.Errorf("XDP_UMEM_REG: %w", err)
	}
	return nil
}

// size sets the ring sizes.
func (s *Socket) size(o *Options) error {
	for _, r := range []struct {
		name string
		opt  int
		n    int
	}{
		{"XDP_UMEM_FILL_RING", unix.XDP_UMEM_FILL_RING, o.FillRing},
		{"XDP_UMEM_COMPLETION_RING", unix.XDP_UMEM_COMPLETION_RING, o.CompletionRing},
		{"XDP_RX_RING", unix.XDP_RX_RING, o.RxRing},
		{"XDP_TX_RING", unix.XDP_TX_RING, o.TxRing},
	} {
		n := uint32(r.n)
		if err := setOption(s.fd, unix.SOL_XDP, r.opt, &n); err != nil {
			return fmt.Errorf("%s of %d: %w", r.name, n, err)
		}
	}
	return nil
}

// mapRings maps the four rings at the offsets that the kernel reports.
func (s *Socket) mapRings(o *Options) error {
	var off unix.XDPMmapOffsets
	if err := getOption(s.fd, unix.SOL_XDP, unix.XDP_MMAP_OFFSETS, &off); err != nil {
		return fmt.Errorf("XDP_MMAP_OFFSETS: %w", err)
	}
	var err error
	if s.fill.ring, s.fill.slots, err = mapRing[uint64](s, unix.XDP_UMEM_PGOFF_FILL_RING, off.Fr, o.FillRing, 8); err != nil {
		return fmt.Errorf("fill ring: %w", err)
	}
	if s.comp.ring, s.comp.slots, err = mapRing[uint64](s, unix.XDP_UMEM_PGOFF_COMPLETION_RING, off.Cr, o.CompletionRing, 8); err != nil {
		return fmt.Errorf("completion ring: %w", err)
	}
	if s.rx.ring, s.rx.slots, err = mapRing[desc](s, unix.XDP_PGOFF_RX_RING, off.Rx, o.RxRing, 16); err != nil {
		return fmt.Errorf("rx ring: %w", err)
	}
	if s.tx.ring, s.tx.slots, err = mapRing[desc](s, unix.XDP_PGOFF_TX_RING, off.Tx, o.TxRing, 16); err != nil {
		return fmt.Errorf("tx ring: %w", err)
	}
	return nil
}

// mapRing maps a ring. A forked process has no such mapping, because the mapping would keep the queue occupied until that
// process ends.
func mapRing[T uint64 | desc](s *Socket, page int64, off unix.XDPRingOffset, n, slot int) (ring, []T, error) {
	mem, err := unix.Mmap(s.fd, page, int(off.Desc)+n*slot, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return ring{}, nil, fmt.Errorf("mmap: %w", err)
	}
	s.maps = append(s.maps, mem)
	if err := unix.Madvise(mem, unix.MADV_DONTFORK); err != nil {
		return ring{}, nil, fmt.Errorf("madvise: %w", err)
	}
	r := ring{
		producer: word(mem, off.Producer), consumer: word(mem, off.Consumer), flags: word(mem, off.Flags),
		size: uint32(n), mask: uint32(n) - 1,
	}
	return r, array[T](mem, off.Desc, uint32(n)), nil
}

// bindFlags returns the sets of bind flags to try, the fastest first. If jumbo is true, packets may need several
// frames, and every set contains XDP_USE_SG.
func bindFlags(m Mode, jumbo bool) (flags []uint16) {
	var kinds []uint16
	if m == Auto || m == ZeroCopy {
		kinds = append(kinds, unix.XDP_ZEROCOPY)
	}
	if m != ZeroCopy {
		kinds = append(kinds, unix.XDP_COPY)
	}
	for _, k := range kinds {
		k |= unix.XDP_USE_NEED_WAKEUP
		flags = append(flags, k|unix.XDP_USE_SG)
		if !jumbo {
			flags = append(flags, k)
		}
	}
	return flags
}

// bind binds the socket to the queue with the first flag set that the kernel accepts.
func (s *Socket) bind(p place) error {
	jumbo := s.mtu+ethSize+vlanSize > int(s.umem.size)-rxHeadRoom
	var err error
	for _, flags := range bindFlags(p.mode, jumbo) {
		if err = bindRetry(s.fd, p, flags); err == nil {
			s.sg = flags&unix.XDP_USE_SG != 0
			return nil
		}
		if errors.Is(err, unix.EBUSY) {
			break
		}
	}
	return explainBind(p.mode, s.mtu, err)
}

// bindRetry retries the bind while the queue is busy, for at most bindTimeout. The kernel frees a queue some time after
// its last socket was closed.
func bindRetry(fd int, p place, flags uint16) error {
	sa := &unix.SockaddrXDP{Flags: flags, Ifindex: uint32(p.ifindex), QueueID: uint32(p.queue)}
	for start := time.Now(); ; time.Sleep(bindPause) {
		err := unix.Bind(fd, sa)
		if !errors.Is(err, unix.EBUSY) || time.Since(start) > bindTimeout {
			return err
		}
	}
}

// tune sets the socket options that make transmission cheaper, as far as the running kernel has them. It also reads
// whether zero-copy was granted.
func (s *Socket) tune(o *Options) {
	var granted uint32
	if getOption(s.fd, unix.SOL_XDP, unix.XDP_OPTIONS, &granted) == nil {
		s.zc = granted&unix.XDP_OPTIONS_ZEROCOPY != 0
	}
	s.idleTx = 2
	budget := uint32(o.TxRing)
	if setOption(s.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, &budget) != nil {
		// Such a kernel also updates the tx consumer index late.
		s.idleTx = o.TxRing/kernelTxBatch + 2
	}
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, o.sendBuffer())
	fd := s.fd
	s.kick = func(raw bool) syscall.Errno { return sendto(fd, raw) }
	s.wakeRx = func() syscall.Errno { return recvfrom(fd) }
}

// describe returns the Caps of the socket.
func (s *Socket) describe(o *Options, asked Mode) link.Caps {
	c := link.Caps{
		SourcePort: true,
		FrameSize:  o.FrameSize - headRoom,
		Segments:   1,
		RxFrames:   o.ownerFrames(),
		TxFrames:   o.TxRing,
		Mode:       string(Copy),
		HostDelay:  hostDelayCopy,
	}
	if s.sg {
		c.Segments = maxSegments
		c.Memory, c.Block = s.memory, int(s.umem.size)
	}
	switch {
	case asked == Generic:
		c.Mode = string(Generic)
		c.NoGroups = true // the program runs behind the kernel's segmentation, so it sees a group as one packet
	case s.zc:
		c.Mode, c.HostDelay = string(ZeroCopy), hostDelayZeroCopy
	}
	headers := headers4
	if s.local.Addr().Is6() {
		headers = headers6
	}
	c.MaxPayload = s.maxPayload(s.mtu, headers, c.Segments)
	return c
}

// maxPayload returns the largest UDP payload of a packet, in bytes. mtu is the size of the largest IP packet, headers
// is the size of all headers, and segments is the number of frames that the packet may have. From the size of each
// frame, maxPayload subtracts the headroom of received packets, so that a peer with frames of the same size can receive
// the packet.
func (s *Socket) maxPayload(mtu, headers, segments int) int {
	frames := segments * (int(s.umem.size) - rxHeadRoom)
	return max(0, min(mtu+ethSize, frames)-headers)
}

// Close releases the queue. It ends every Wait and waits for their return.
func (s *Socket) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.signal()
	s.kernelStats() // saves the final values
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths.Drain(s.release)
	return s.undo()
}

// undo releases what openSocket has acquired so far, in reverse order. Afterwards the rings look empty to the owner.
func (s *Socket) undo() error {
	err := s.destroySocket()
	s.umem, s.pool, s.level, s.txMax, s.loop, s.lent = umem{}, pool{}, fillLevel{}, 0, nil, nil
	for _, m := range s.maps {
		err = errors.Join(err, unix.Munmap(m))
	}
	s.maps = nil
	if s.sleeper != nil {
		err = errors.Join(err, s.sleeper.Close())
		s.sleeper = nil
	}
	if s.event >= 0 {
		err = errors.Join(err, unix.Close(s.event))
		s.event = -1
	}
	return err
}

// destroySocket undoes createSocket. The rings look empty afterwards; the frames stay mapped.
func (s *Socket) destroySocket() error {
	s.rx, s.tx = consumer[desc]{ring: idleRing()}, producer[desc]{ring: idleRing()}
	s.comp, s.fill = consumer[uint64]{ring: idleRing()}, producer[uint64]{ring: idleRing()}
	var errs []error
	for len(s.maps) > 1 {
		last := len(s.maps) - 1
		errs = append(errs, unix.Munmap(s.maps[last]))
		s.maps = s.maps[:last]
	}
	if s.fd >= 0 {
		exclusive.Remove(s.fd)
		errs = append(errs, unix.Close(s.fd))
		s.fd = -1
	}
	return errors.Join(errs...)
}

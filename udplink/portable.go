package udplink

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/internal/park"
	"github.com/datxdp/datxdp/link"
)

// tokens is the largest number of pending wake-ups. It is above one, so that several waiters wake.
const tokens = 16

// portable is a socket of package net. One goroutine reads it into free frames; the owner receives them from a channel.
type portable struct {
	link    *Link
	conn    *net.UDPConn
	spare   chan uint32
	ready   chan arrival
	from    []netip.AddrPort // sender, by receive frame; written before the frame enters ready
	alarm   chan struct{}
	waiters atomic.Int32
	reading park.Patience // of receives that find nothing
	rest    *time.Timer   // of letRead
	done    chan struct{}
	closed  sync.Once
	all     sync.WaitGroup
}

type arrival struct {
	frame  uint32
	length int
}

func openPortable(l *Link, o Options) (socket, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(l.local))
	if err != nil {
		return nil, err
	}
	l.local = netip.AddrPortFrom(l.local.Addr(), conn.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	// A smaller buffer than requested only costs packets.
	_ = conn.SetReadBuffer(o.Buffer)
	_ = conn.SetWriteBuffer(o.Buffer)
	l.slab.allocate()
	s := &portable{
		link:  l,
		conn:  conn,
		spare: make(chan uint32, o.Frames),
		ready: make(chan arrival, o.Frames),
		from:  make([]netip.AddrPort, o.Frames),
		alarm: make(chan struct{}, tokens),
		done:  make(chan struct{}),
		rest:  time.NewTimer(0),
	}
	for f := range o.Frames {
		s.spare <- uint32(f)
	}
	s.all.Go(s.read)
	return s, nil
}

// read moves packets from the socket to ready until the socket is closed.
func (s *portable) read() {
	scratch := make([]byte, s.link.slab.size+1)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(scratch)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case n > s.link.slab.size:
			s.link.stats.rxInvalid.Add(1)
		case err != nil: // an ICMP error about an earlier packet or, on Windows, a packet that is too long
			s.link.stats.rxInvalid.Add(1)
		default:
			s.deliver(scratch[:n], from)
		}
	}
}

// deliver copies a packet into a free frame. Reading directly into the frame would not detect a packet that is one byte
// too long.
func (s *portable) deliver(data []byte, from netip.AddrPort) {
	select {
	case f := <-s.spare:
		copy(s.link.slab.blockData(f), data)
		s.from[f] = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		s.ready <- arrival{frame: f, length: len(data)} // never blocks: ready has as many slots as there are frames
		s.wake()
	default:
		s.link.stats.rxDropped.Add(1)
	}
}

func (s *portable) recv(bufs []link.Buf) int {
	n, size := 0, 0
	for ; n < len(bufs); n++ {
		a, ok := s.next()
		if !ok && n == 0 {
			a, ok = s.letRead()
		}
		if !ok {
			break
		}
		bufs[n] = link.Buf{Data: s.link.slab.blockData(a.frame)[:a.length], Frame: a.frame}
		size += a.length
	}
	if n == 0 {
		return 0
	}
	s.reading.Reset()
	s.link.stats.rxPackets.Add(uint64(n))
	s.link.stats.rxBytes.Add(uint64(size))
	return n
}

// next returns the next packet, or false if there is none.
func (s *portable) next() (a arrival, ok bool) {
	select {
	case a = <-s.ready:
		return a, true
	default:
		return a, false
	}
}

// letRead lets the reader go on, because the thread of an owner that polls may have the reader's processor. It returns
// the packet that the reader brings meanwhile, or false.
func (s *portable) letRead() (a arrival, ok bool) {
	if !s.reading.Spent() {
		return a, false
	}
	s.rest.Reset(park.ShortestSleep)
	select {
	case a = <-s.ready:
		s.rest.Stop()
		return a, true
	case <-s.rest.C:
		return a, false
	}
}

func (s *portable) send(bufs []link.Buf) {
	for i := range bufs {
		to, ok := s.destination(&bufs[i])
		if !ok {
			s.link.stats.txDropped.Add(1)
			continue
		}
		s.link.stats.txKicks.Add(1)
		if _, err := s.conn.WriteToUDPAddrPort(bufs[i].Data, to); err != nil {
			s.link.stats.txDropped.Add(1)
			continue
		}
		s.link.stats.txPackets.Add(1)
		s.link.stats.txBytes.Add(uint64(len(bufs[i].Data)))
	}
}

func (s *portable) destination(b *link.Buf) (netip.AddrPort, bool) {
	if b.Flags&link.More != 0 {
		return netip.AddrPort{}, false
	}
	if b.Path == link.PathReply {
		to := s.source(b.Frame)
		if b.Port != 0 {
			to = netip.AddrPortFrom(to.Addr(), b.Port)
		}
		return to, b.Frame < s.link.slab.blocks
	}
	way := s.link.paths.Get(b.Path)
	if way == nil {
		return netip.AddrPort{}, false
	}
	return way.to, true
}

func (s *portable) giveBack(frame uint32) { s.spare <- frame }

// keep does nothing: a frame holds one packet.
// shed does nothing: package net has no socket filters.
func (s *portable) shed(netip.Addr, byte, byte) {}

func (s *portable) keep([]link.Buf) {}

// reports returns nothing: only Linux reports ICMP errors to unconnected sockets.
func (s *portable) reports([]link.Report) int { return 0 }

func (s *portable) source(frame uint32) netip.AddrPort {
	if frame >= s.link.slab.blocks {
		return netip.AddrPort{}
	}
	return s.from[frame]
}

func (s *portable) wait(d time.Duration) {
	if d == 0 || len(s.ready) > 0 {
		return
	}
	var late <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		late = timer.C
	}
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	s.link.stats.wakeups.Add(1)
	select {
	case <-s.alarm:
	case <-late:
	case <-s.done:
	}
}

func (s *portable) wake() {
	for n := max(1, s.waiters.Load()); n > 0; n-- {
		select {
		case s.alarm <- struct{}{}:
		default:
			return
		}
	}
}

func (s *portable) close() (err error) {
	s.closed.Do(func() {
		close(s.done)
		err = s.conn.Close()
		s.all.Wait()
	})
	return err
}

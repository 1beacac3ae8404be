package rawbench

import (
	"fmt"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/xdp"
)

func openPort(cfg Config) (port, error) {
	if cfg.Engine == Asavie {
		return openAsavie(cfg)
	}
	return openNative(cfg)
}

// recvBatch is the number of frames per receive call.
const recvBatch = 64

// native uses the engine of this repository. It transmits on one queue, but receives on all, because a NIC spreads
// incoming packets over its queues.
type native struct {
	dev    *xdp.Device
	queues []queue
	sock   *xdp.Socket // for transmission
	caps   link.Caps

	in, back, free, out []link.Buf
}

// queue is a receive queue.
type queue struct {
	sock *xdp.Socket
	// open is the length of an incomplete packet so far, openHead its header.
	open     int
	openHead [askLen]byte
}

func openNative(cfg Config) (port, error) {
	o := xdp.DefaultOptions()
	o.Port, o.Addr = cfg.Port, cfg.Local
	if cfg.Mode != "" {
		o.Mode = xdp.Mode(cfg.Mode)
	}
	dev, err := xdp.Open(cfg.Interface, o)
	if err != nil {
		return nil, err
	}
	p := &native{dev: dev, sock: dev.Sockets()[0]}
	for _, s := range dev.Sockets() {
		p.queues = append(p.queues, queue{sock: s})
	}
	p.caps = p.sock.Caps()
	p.in, p.back, p.free = make([]link.Buf, recvBatch), make([]link.Buf, 0, recvBatch), make([]link.Buf, 0, recvBatch)
	p.out = make([]link.Buf, max(recvBatch, 8*p.caps.Segments))
	return p, nil
}

func (p *native) mode() string { return p.caps.Mode }

func (p *native) close() error { return p.dev.Close() }

// wait sleeps on one queue; packets on other queues wait for up to d.
func (p *native) wait(d time.Duration) error {
	p.sock.Wait(d)
	return nil
}

func (p *native) drained() bool { return p.sock.InFlight() == 0 }

func (p *native) dropped() (rx, tx uint64) {
	s := p.dev.Stats()
	rx = s.RxDropped + s.RxInvalid
	if c, err := p.dev.Counters(); err == nil {
		rx += c.PassedNoSocket + c.PassedMalformed
	}
	return rx, s.TxDropped
}

func (p *native) exchange(visit visitor) error {
	for i := range p.queues {
		p.serve(&p.queues[i], visit)
	}
	return nil
}

// serve handles the packets that arrived on a queue. Answers leave on the same queue.
func (p *native) serve(q *queue, visit visitor) {
	n := q.sock.RecvFrames(p.in)
	if n == 0 {
		return
	}
	p.back, p.free = p.back[:0], p.free[:0]
	for i := range p.in[:n] {
		b := &p.in[i]
		if q.take(b, visit) {
			p.back = append(p.back, *b)
		} else {
			p.free = append(p.free, *b)
		}
	}
	if len(p.back) > 0 {
		q.sock.SendFrames(p.back)
	}
	q.sock.Free(p.free)
}

// take handles one frame of a packet. If the packet has several frames, take copies its header, because the first frame
// may be freed before the last one arrives.
func (q *queue) take(b *link.Buf, visit visitor) (answer bool) {
	more := b.Flags&link.More != 0
	if q.open == 0 && !more {
		return visit(b.Data, len(b.Data))
	}
	if q.open == 0 {
		copy(q.openHead[:], b.Data)
	}
	q.open += len(b.Data)
	if !more {
		visit(q.openHead[:headLen], q.open)
		q.open = 0
	}
	return false
}

func (p *native) send(n, size int, write func([]byte)) (int, error) {
	per := (size + p.caps.FrameSize - 1) / p.caps.FrameSize
	if per > p.caps.Segments {
		return 0, fmt.Errorf("rawbench: frame of %d bytes in %d pieces: %w", size, per, ErrEngine)
	}
	got := p.sock.Alloc(p.out[:min(n*per, len(p.out)/per*per)])
	whole := got / per
	p.sock.Free(p.out[whole*per : got])
	for i := range whole {
		p.shape(p.out[i*per:(i+1)*per], size)
		write(p.out[i*per].Data)
	}
	if whole > 0 {
		p.sock.SendFrames(p.out[:whole*per])
	}
	return whole, nil
}

// shape sets the lengths of the frames of one packet.
func (p *native) shape(bufs []link.Buf, size int) {
	for i := range bufs {
		bufs[i].Data = bufs[i].Data[:min(size, p.caps.FrameSize)]
		bufs[i].Flags = link.More
		size -= len(bufs[i].Data)
	}
	bufs[len(bufs)-1].Flags = 0
}

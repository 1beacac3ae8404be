package rawbench

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	asavie "github.com/asavie/xdp"
)

// asaviePort measures github.com/asavie/xdp v0.3.3 at the highest speed of its API: it spins on the rings without
// calling Poll. The library has these limits:
//
//   - One frame per packet, so MTU 1500.
//   - The kernel chooses the mode, and the library cannot report it; this package reads the mode itself.
//   - Its XDP program redirects every packet of the queue.
//   - It panics on an unexpected errno; this package turns the panic into an error.
//   - A closed queue stays busy until the process ends.
type asaviePort struct {
	xsk     *asavie.Socket
	program *asavie.Program
	ifindex int
	// granted is the mode as reported by the kernel.
	granted string
	back    []asavie.Desc
}

// asavieFill is the number of free slots in the fill ring at which the ring is refilled. A refill adds many frames at
// once, because the search for a free frame scans all frames.
const asavieFill = 256

// asavieOptions are twice the defaults, enough for a burst. Frames beyond the fill ring are for transmission.
var asavieOptions = asavie.SocketOptions{
	NumFrames: 2048, FrameSize: 2048,
	FillRingNumDescs: 1024, CompletionRingNumDescs: 1024, RxRingNumDescs: 1024, TxRingNumDescs: 512,
}

var errPanic = errors.New("asavie/xdp panicked")

// guard turns a panic of the library into an error.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", errPanic, r)
	}
}

func openAsavie(cfg Config) (_ port, err error) {
	defer guard(&err)
	ifi, err := net.InterfaceByName(cfg.Interface)
	if err != nil {
		return nil, fmt.Errorf("rawbench: %s: %w", cfg.Interface, err)
	}
	p := &asaviePort{ifindex: ifi.Index}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.program, err = asavie.NewProgram(1); err != nil {
		return nil, fmt.Errorf("rawbench: asavie: program: %w", err)
	}
	generic, err := p.attach()
	if err != nil {
		return nil, fmt.Errorf("rawbench: asavie: attach: %w", err)
	}
	options := asavieOptions
	if p.xsk, err = asavie.NewSocket(p.ifindex, 0, &options); err != nil {
		return nil, fmt.Errorf("rawbench: asavie: socket: %w", err)
	}
	if err = p.program.Register(0, p.xsk.FD()); err != nil {
		return nil, fmt.Errorf("rawbench: asavie: register: %w", err)
	}
	p.granted = grantedMode(p.xsk.FD(), generic)
	p.fill()
	return p, nil
}

// Attach flags, XDP_FLAGS_* of linux/if_link.h.
const (
	flagGeneric = 1 << 1
	flagDriver  = 1 << 2
)

// attach attaches the program in native mode or, if that fails, in generic mode. The kernel could choose the mode
// itself, but would not report it. The flags are a variable of the whole process.
func (p *asaviePort) attach() (generic bool, err error) {
	asavie.DefaultXdpFlags = flagDriver
	if err = p.program.Attach(p.ifindex); err == nil {
		return false, nil
	}
	asavie.DefaultXdpFlags = flagGeneric
	if genericErr := p.program.Attach(p.ifindex); genericErr != nil {
		return false, errors.Join(err, genericErr)
	}
	return true, nil
}

// grantedMode returns the mode of a bound socket, in the terms of package xdp.
//
// System calls: getsockopt(SOL_XDP, XDP_OPTIONS).
func grantedMode(fd int, generic bool) string {
	// Of linux/socket.h and linux/if_xdp.h.
	const solXDP, xdpOptions, zeroCopy = 283, 8, 1
	options, err := syscall.GetsockoptInt(fd, solXDP, xdpOptions)
	switch {
	case err == nil && options&zeroCopy != 0:
		return "zero-copy"
	case generic:
		return "generic"
	}
	return "copy"
}

func (p *asaviePort) mode() string { return p.granted }

func (p *asaviePort) wait(d time.Duration) (err error) {
	defer guard(&err)
	_, _, err = p.xsk.Poll(int(d.Milliseconds()))
	return err
}

// close releases what it can. Unregistering always fails; detaching works only for a native program.
func (p *asaviePort) close() (err error) {
	defer guard(&err)
	var errs []error
	if p.program != nil {
		errs = append(errs, p.program.Detach(p.ifindex))
	}
	if p.xsk != nil {
		errs = append(errs, p.xsk.Close())
	}
	if p.program != nil {
		errs = append(errs, p.program.Close())
	}
	return errors.Join(errs...)
}

func (p *asaviePort) fill() {
	if n := p.xsk.NumFreeFillSlots(); n >= asavieFill {
		p.xsk.Fill(p.xsk.GetDescs(n))
	}
}

// reap reclaims transmitted frames. It also kicks while the tx ring is not empty, because one kick transmits at most 32
// frames.
func (p *asaviePort) reap() {
	if n := p.xsk.NumCompleted(); n > 0 {
		p.xsk.Complete(n)
	}
	if p.xsk.NumFreeTxSlots() < asavieOptions.TxRingNumDescs {
		p.xsk.Transmit(nil)
	}
}

func (p *asaviePort) drained() bool {
	p.reap()
	return p.xsk.NumTransmitted() == 0
}

func (p *asaviePort) dropped() (rx, tx uint64) {
	s, err := p.xsk.Stats()
	if err != nil {
		return 0, 0
	}
	k := s.KernelStats
	return k.Rx_dropped + k.Rx_ring_full + k.Rx_fill_ring_empty_descs, k.Tx_invalid_descs
}

func (p *asaviePort) exchange(visit visitor) (err error) {
	defer guard(&err)
	p.reap()
	n := p.xsk.NumReceived()
	if n == 0 {
		return nil
	}
	p.back = p.back[:0]
	for _, d := range p.xsk.Receive(n) {
		if h := p.xsk.GetFrame(d); visit(h, len(h)) {
			p.back = append(p.back, d)
		}
	}
	if len(p.back) > 0 {
		p.xsk.Transmit(p.back)
	}
	p.fill()
	return nil
}

func (p *asaviePort) send(n, size int, write func([]byte)) (sent int, err error) {
	defer guard(&err)
	p.reap()
	descs := p.xsk.GetDescs(min(n, p.xsk.NumFreeTxSlots()))
	for i := range descs {
		descs[i].Len = uint32(size)
		write(p.xsk.GetFrame(descs[i]))
	}
	return p.xsk.Transmit(descs), nil
}

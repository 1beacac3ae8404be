package rawbench

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Engines.
const (
	Native = "native"
	Asavie = "asavie"
)

// Errors.
var (
	// ErrSilent: the other end did not answer.
	ErrSilent = errors.New("no answer from the other end")
	// ErrStuck: the transmit ring is full and the kernel does not empty it.
	ErrStuck = errors.New("the transmit ring is stuck")
	// ErrEngine: there is no such engine, or it does not support this.
	ErrEngine = errors.New("engine cannot do that")
)

// Config describes an end and its peer.
type Config struct {
	Interface string
	Engine    string
	// Mode is the requested mode; empty takes any. For the native engine only.
	Mode string
	// MTU of the link, which bounds the frame size.
	MTU int
	// Port is the UDP port of the frames. Local and Peer are their addresses, and PeerMAC is their destination MAC
	// address.
	Port        uint16
	Local, Peer netip.Addr
	PeerMAC     net.HardwareAddr
}

// port moves raw frames in batches. One goroutine uses it.
type port interface {
	// exchange receives packets and calls visit with the header and the length of each. The header has at least headLen
	// bytes unless the packet is shorter. If visit returns true and the packet has one frame, the packet is sent back
	// with the changes that visit made.
	exchange(visit visitor) error
	// send transmits up to n packets of size bytes, and calls write to fill in the header of each. It returns the
	// number of packets for which there was room.
	send(n, size int, write func(head []byte)) (int, error)
	// drained reports whether all frames have left.
	drained() bool
	// dropped returns the packets that the engine's counters report as lost, by direction.
	dropped() (rx, tx uint64)
	// wait sleeps until a packet has arrived, at most d.
	wait(d time.Duration) error
	mode() string
	close() error
}

type visitor func(head []byte, size int) (answer bool)

// end is the common part of a client and a server.
type end struct {
	port port
	cfg  Config
}

func open(cfg Config) (end, error) {
	if err := cfg.validate(); err != nil {
		return end{}, err
	}
	p, err := openPort(cfg)
	if err != nil {
		return end{}, err
	}
	return end{port: p, cfg: cfg}, nil
}

func (c *Config) validate() error {
	switch {
	case c.Engine != Native && c.Engine != Asavie:
		return fmt.Errorf("rawbench: engine %q: %w; choose %s or %s", c.Engine, ErrEngine, Native, Asavie)
	case c.Engine == Asavie && c.MTU > 1500:
		return fmt.Errorf("rawbench: asavie at MTU %d: %w: it has no multi-buffer", c.MTU, ErrEngine)
	case c.Engine == Asavie && c.Mode != "":
		return fmt.Errorf("rawbench: asavie in mode %s: %w: it takes what it gets", c.Mode, ErrEngine)
	case !c.Local.Is4() || !c.Peer.Is4():
		return fmt.Errorf("rawbench: %v to %v: %w: frames are IPv4", c.Local, c.Peer, ErrEngine)
	}
	return nil
}

// Mode returns the granted mode.
func (e *end) Mode() string { return e.port.mode() }

// Close releases the queue.
func (e *end) Close() error { return e.port.close() }

package rawbench

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// The engines.
const (
	Native = "native"
	Asavie = "asavie"
)

// Errors.
var (
	// ErrSilent: the other end did not answer.
	ErrSilent = errors.New("no answer from the other end")
	// ErrStuck: the transmit ring is full and the kernel takes nothing from it.
	ErrStuck = errors.New("the transmit ring is stuck")
	// ErrEngine: there is no such engine, or it cannot do this.
	ErrEngine = errors.New("engine cannot do that")
)

// Config names an end and its peer.
type Config struct {
	Interface string
	Engine    string
	// Mode is the mode asked for by name; empty takes what is granted. Native only.
	Mode string
	// MTU of the link: it bounds the frame.
	MTU int
	// Port is the UDP port of the frames, Local and Peer their addresses, PeerMAC where they go.
	Port        uint16
	Local, Peer netip.Addr
	PeerMAC     net.HardwareAddr
}

// port is a queue that moves raw frames in batches. One goroutine uses it.
type port interface {
	// exchange takes what has arrived and calls visit with the head of each packet, at least
	// headLen bytes unless the packet is shorter, and the packet's whole length. A packet of one
	// frame goes back where it came from, as visit left it, if visit says so.
	exchange(visit visitor) error
	// send transmits up to n packets of size bytes; write fills in the head of each. It returns
	// how many it had room for.
	send(n, size int, write func(head []byte)) (int, error)
	// drained is whether everything sent has left.
	drained() bool
	// dropped is the packets that counters of the engine know to be lost, by direction.
	dropped() (rx, tx uint64)
	// wait sleeps until something has arrived, at most d.
	wait(d time.Duration) error
	mode() string
	close() error
}

type visitor func(head []byte, size int) (answer bool)

// end is what a client and a server have in common.
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

// Mode is how packets move, as granted.
func (e *end) Mode() string { return e.port.mode() }

// Close gives the queue back.
func (e *end) Close() error { return e.port.close() }

//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/datxdp/datxdp/internal/exclusive"
)

// Steer is an attached program that redirects UDP ports of one interface to AF_XDP sockets. Any goroutine may call
// its methods.
type Steer struct {
	objs    *steerObjects
	program *ebpf.Program // of objs
	queues  int
	ifname  string
	mode    Mode
	refusal error

	// mu prevents Close from closing descriptors that another method uses. A lock is acceptable, because no method is
	// on a data path.
	mu        sync.RWMutex
	link      link.Link
	closed    bool
	addresses map[netip.Addr]bool // in the map of the program; nil if it redirects every address
}

// Attach loads the program and attaches it to the interface. No packet is redirected before the first [Steer.Register].
// Attach returns the errors of this package. If the verifier rejects the program, the error wraps an
// [ebpf.VerifierError] with the whole log.
//
// System calls: bpf(2): BPF_MAP_CREATE, BPF_BTF_LOAD, BPF_PROG_LOAD, BPF_LINK_CREATE, probes of the kernel's features;
// netlink RTM_GETLINK, and RTM_SETLINK to learn why a program is refused.
func Attach(o Options) (_ *Steer, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	ifi, err := o.find()
	if err != nil {
		return nil, err
	}
	s := &Steer{queues: o.Queues, ifname: ifi.Name}
	if s.objs, err = load(o); err != nil {
		return nil, err
	}
	s.program = s.objs.DatxdpSteer
	defer func() {
		if err != nil {
			err = errors.Join(err, s.objs.Close())
		}
	}()
	if len(o.Addresses) > 0 {
		s.addresses = make(map[netip.Addr]bool)
		for _, a := range o.Addresses {
			s.addresses[a.Unmap()] = true
		}
	}
	if err := s.attach(ifi, o.Mode); err != nil {
		return nil, err
	}
	return s, nil
}

// Register redirects the packets of a queue to the AF_XDP socket fd, in place of an earlier socket. fd must be bound to
// this queue of this interface, because the kernel drops packets for a socket that is bound elsewhere. The caller keeps
// the descriptor. When a socket is closed, the kernel unregisters it.
//
// System calls: bpf(BPF_MAP_UPDATE_ELEM).
func (s *Steer) Register(queue, fd int) error {
	return s.onQueue("register", queue, func(xsks *ebpf.Map) error {
		return xsks.Put(uint32(queue), uint32(fd))
	})
}

// Unregister stops the redirect of a queue; its packets go to the kernel again. Packets that were redirected before may
// still arrive on the socket after Unregister returns. It is no error if the queue has no socket.
//
// System calls: bpf(BPF_MAP_DELETE_ELEM).
func (s *Steer) Unregister(queue int) error {
	return s.onQueue("unregister", queue, func(xsks *ebpf.Map) error {
		err := xsks.Delete(uint32(queue))
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		}
		return err
	})
}

func (s *Steer) onQueue(call string, queue int, fn func(xsks *ebpf.Map) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return fmt.Errorf("bpf: %s queue %d of %s: %w", call, queue, s.ifname, ErrClosed)
	}
	if queue < 0 || queue >= s.queues {
		return fmt.Errorf("bpf: %s queue %d of %s: it has queues 0 to %d", call, queue, s.ifname, s.queues-1)
	}
	if err := fn(s.objs.Xsks); err != nil {
		return fmt.Errorf("bpf: %s queue %d of %s: %w", call, queue, s.ifname, err)
	}
	return nil
}

// Counters reads the program's counters. The counters are not read at one moment: the result may include a frame but
// miss an earlier frame that another counter counts.
//
// System calls: bpf(BPF_MAP_LOOKUP_ELEM) for each counter.
func (s *Steer) Counters() (Counters, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return Counters{}, fmt.Errorf("bpf: counters of %s: %w", s.ifname, ErrClosed)
	}
	c, err := readCounters(s.objs.Counters)
	if err != nil {
		return Counters{}, fmt.Errorf("bpf: counters of %s: %w", s.ifname, err)
	}
	return c, nil
}

// field returns the counter of a verdict.
func (c *Counters) field(v steerVerdict) *uint64 {
	switch v {
	case steerVerdictREDIRECTED:
		return &c.Redirected
	case steerVerdictPASSED_OTHER:
		return &c.PassedOther
	case steerVerdictPASSED_NO_SOCKET:
		return &c.PassedNoSocket
	case steerVerdictPASSED_FRAGMENT:
		return &c.PassedFragment
	case steerVerdictPASSED_OPTIONS:
		return &c.PassedOptions
	case steerVerdictPASSED_MALFORMED:
		return &c.PassedMalformed
	case steerVerdictVERDICTS:
	}
	return nil
}

func readCounters(m *ebpf.Map) (c Counters, err error) {
	var perCPU []uint64
	for v := range steerVerdictVERDICTS {
		if err := m.Lookup(v, &perCPU); err != nil {
			return Counters{}, err
		}
		for _, n := range perCPU {
			*c.field(v) += n
		}
	}
	return c, nil
}

// Mode returns the granted mode: Native or Generic.
func (s *Steer) Mode() Mode { return s.mode }

// NativeRefusal returns why Auto fell back to Generic, that is, why the driver refused Native. Otherwise it returns
// nil.
func (s *Steer) NativeRefusal() error { return s.refusal }

// Close detaches and frees the program. The sockets stay open but receive no more packets. A second Close does nothing.
//
// System calls: bpf(BPF_LINK_DETACH), close.
func (s *Steer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if fd, ok := descriptor(s.link); ok {
		exclusive.Remove(fd)
	}
	// Detach takes effect at once; the kernel may defer the last close of a link.
	if err := errors.Join(s.link.Detach(), s.link.Close(), s.objs.Close()); err != nil {
		return fmt.Errorf("bpf: detach from %s: %w", s.ifname, err)
	}
	return nil
}

//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Engines is the number of engine numbers of a shared interface, and AnyEngine stands for the lease that answers packets
// of no lease. They equal ENGINES and ANY in lease.h.
const (
	Engines   = 256
	AnyEngine = Engines
)

// linkPin is the name of the pin of the program on the interface. The maps are pinned by their names.
const linkPin = "interface"

// Share is the program on an interface that leases share, and the maps of all its programs. They are pinned in a
// directory of a BPF file system, and outlive the process. Only one process at a time may have the Share of an interface;
// its methods must not be called concurrently.
type Share struct {
	options Options
	dir     string
	mode    Mode
	objs    shareObjects
	indices *ebpf.Map
	link    link.Link
}

// OpenShare attaches the program that directs packets to leases, or takes over what an earlier process left in the
// directory. Options are those of [Attach]; Queues is ignored. The errors are those of Attach.
//
// System calls: those of Attach, and bpf(BPF_OBJ_PIN, BPF_OBJ_GET, BPF_LINK_UPDATE).
func OpenShare(dir string, o Options) (_ *Share, err error) {
	o.Queues = 1
	if err := o.validate(); err != nil {
		return nil, err
	}
	ifi, err := o.find()
	if err != nil {
		return nil, err
	}
	o.Ifindex, o.Interface = ifi.Index, ifi.Name
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("bpf: directory of pins: %w", err)
	}
	s := &Share{options: o, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err = s.load(); err != nil {
		return nil, err
	}
	if err = s.attach(); err != nil {
		return nil, err
	}
	return s, s.SetAddresses(o.Addresses)
}

// load loads the program. Maps that are pinned in the directory are used again.
func (s *Share) load() error {
	multiBuffer, err := haveMultiBuffer()
	if err != nil {
		return loadError(err)
	}
	spec, err := loadShare()
	if err != nil {
		return fmt.Errorf("bpf: read embedded object: %w", err)
	}
	if err := setConstants(spec, s.options, multiBuffer); err != nil {
		return err
	}
	spec.Maps[shareMapAddresses].Pinning = ebpf.PinByName
	spec.Maps[shareMapOwners].Pinning = ebpf.PinByName
	if !multiBuffer {
		spec.Programs[shareProgDatxdpShare].Flags &^= xdpHasFrags
	}
	if err := spec.LoadAndAssign(&s.objs, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: s.dir}}); err != nil {
		return loadError(err)
	}
	send, err := loadSend()
	if err != nil {
		return err
	}
	s.indices, err = ebpf.NewMapWithOptions(send.Maps[sendMapIndices], ebpf.MapOptions{PinPath: s.dir})
	return err
}

// attach attaches the program, or replaces that of an earlier process without a gap.
func (s *Share) attach() error {
	pin := filepath.Join(s.dir, linkPin)
	l, err := link.LoadPinnedLink(pin, nil)
	if err == nil {
		if err = l.Update(s.objs.DatxdpShare); err == nil {
			s.link = l
			return nil
		}
		_ = l.Close() // the interface of the link is gone
		if err := os.Remove(pin); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bpf: pinned link of %s: %w", s.options.Interface, err)
	}
	at := Steer{program: s.objs.DatxdpShare}
	ifi, err := s.options.find()
	if err != nil {
		return err
	}
	if err := at.attach(ifi, s.options.Mode); err != nil {
		return err
	}
	s.link, s.mode = at.link, at.mode
	return s.link.Pin(pin)
}

// SetAddresses replaces the addresses whose packets go to leases, and from which leases may send, at most [MaxAddresses].
func (s *Share) SetAddresses(addrs []netip.Addr) error {
	if err := validateAddresses(addrs); err != nil {
		return err
	}
	have, err := readAddresses(s.objs.Addresses)
	if err == nil {
		err = replaceAddresses(s.objs.Addresses, have, addrs)
	}
	if err != nil {
		return fmt.Errorf("bpf: addresses of %s: %w", s.options.Interface, err)
	}
	return nil
}

// SetEnd directs the packets of an engine, or those of AnyEngine, to the interface with an index, which is the host end
// of a lease's veth. 0 directs them nowhere. first is true for the first engine of a lease.
func (s *Share) SetEnd(engine, ifindex int, first bool) error {
	key := uint32(engine)
	put := func(m *ebpf.Map) error {
		if ifindex != 0 {
			return m.Put(key, uint32(ifindex))
		}
		if err := m.Delete(key); !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
		return nil
	}
	err := errors.Join(s.indices.Put(key, uint32(ifindex)), put(s.objs.Ends))
	if first {
		err = errors.Join(err, put(s.objs.Everyone))
	}
	if err != nil {
		return fmt.Errorf("bpf: engine %d of %s: %w", engine, s.options.Interface, err)
	}
	return nil
}

// SetQualifier directs connection requests for a qualifier to an engine. The error is ErrTaken if another engine
// has the qualifier. DeleteQualifier ends it.
func (s *Share) SetQualifier(qualifier uint64, engine int) error {
	err := s.objs.Qualifiers.Update(bigEndian(qualifier), uint32(engine), ebpf.UpdateNoExist)
	if errors.Is(err, ebpf.ErrKeyExist) {
		return ErrTaken
	}
	return err
}

// DeleteQualifier undoes SetQualifier. A qualifier without an engine is no error.
func (s *Share) DeleteQualifier(qualifier uint64) error {
	err := s.objs.Qualifiers.Delete(bigEndian(qualifier))
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// Qualifiers returns the qualifiers that have one of the engines first to first+n-1.
func (s *Share) Qualifiers(first, n int) (all []uint64, err error) {
	var key [8]byte
	var engine uint32
	each := s.objs.Qualifiers.Iterate()
	for each.Next(&key, &engine) {
		if int(engine) >= first && int(engine) < first+n {
			all = append(all, fromBigEndian(key))
		}
	}
	return all, each.Err()
}

// SetPort gives a UDP source port to a lease, named by its first engine; -1 takes it away.
func (s *Share) SetPort(port uint16, first int) error {
	return s.objs.Owners.Put(uint32(port), uint32(first+1))
}

// Mode returns in which mode the program was attached. It is Auto if an earlier process attached it.
func (s *Share) Mode() Mode { return s.mode }

// Counters reads the counters of the program on the interface.
func (s *Share) Counters() (Counters, error) { return readCounters(s.objs.Counters) }

// Detach removes the program and the pins. No lease must exist.
func (s *Share) Detach() error {
	var err error
	if s.link != nil {
		err = errors.Join(s.link.Unpin(), s.link.Detach())
	}
	return errors.Join(err, s.Close(), os.RemoveAll(s.dir))
}

// Close closes the descriptors of the process. The program stays attached.
func (s *Share) Close() error {
	var err error
	if s.link != nil {
		err = s.link.Close()
		s.link = nil
	}
	if s.indices != nil {
		err = errors.Join(err, s.indices.Close())
	}
	if s.objs.DatxdpShare != nil {
		err = errors.Join(err, s.objs.Close())
	}
	return err
}

//go:build amd64 || arm64

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Names of the pins of a lease in its directory.
const (
	deliverPin = "deliver" // link of the program on the client's end
	sendPin    = "send"    // link of the program at the host end
	socketPin  = "socket"  // map with the lease's socket
	sentPin    = "sent"    // counters of the program at the host end
)

// End describes a lease's veth for [Share.Connect].
type End struct {
	Dir          string // of the lease's pins; it must exist
	Host, Client int    // indices of its two ends
	First        int    // the lease's first engine
	MTU          int    // bytes, of the interface
	Socket       int    // descriptor of the lease's socket, which is bound to queue 0 of the client's end
}

// Connect attaches the programs of a lease and pins them. On an error the caller removes the veth and the directory; this
// detaches what was attached.
//
// System calls: bpf(BPF_PROG_LOAD, BPF_MAP_CREATE, BPF_MAP_UPDATE_ELEM, BPF_LINK_CREATE, BPF_OBJ_PIN).
func (s *Share) Connect(e End) error {
	if err := e.deliver(); err != nil {
		return fmt.Errorf("bpf: program of the client's end: %w", err)
	}
	if err := s.check(e); err != nil {
		return fmt.Errorf("bpf: program of the host end: %w", err)
	}
	return nil
}

// deliver attaches the program that gives packets to the lease's socket.
func (e *End) deliver() (err error) {
	var objs deliverObjects
	if err := loadDeliverObjects(&objs, nil); err != nil {
		return loadError(err)
	}
	defer func() { err = errors.Join(err, objs.Close()) }()
	if err := objs.Socket.Put(uint32(0), uint32(e.Socket)); err != nil {
		return err
	}
	if err := objs.Socket.Pin(filepath.Join(e.Dir, socketPin)); err != nil {
		return err
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: objs.DatxdpDeliver, Interface: e.Client, Flags: link.XDPDriverMode})
	if err != nil {
		return err
	}
	return pin(l, filepath.Join(e.Dir, deliverPin))
}

// loadCheck loads the program that checks the lease's packets.
func (s *Share) loadCheck(e End) (*sendObjects, error) {
	spec, err := loadSend()
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]any{
		sendVarLease: uint32(e.First + 1), sendVarInterface: uint32(s.options.Ifindex), sendVarPort: s.options.Port,
		sendVarMac: s.options.MAC, sendVarMaxFrame: uint32(e.MTU + ethernetHeader),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	objs := &sendObjects{}
	if err := spec.LoadAndAssign(objs, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: s.dir}}); err != nil {
		return nil, loadError(err)
	}
	return objs, nil
}

// check attaches the program that checks the lease's packets.
func (s *Share) check(e End) (err error) {
	objs, err := s.loadCheck(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, objs.Close()) }()
	if err := objs.Sent.Pin(filepath.Join(e.Dir, sentPin)); err != nil {
		return err
	}
	l, err := link.AttachTCX(link.TCXOptions{Program: objs.DatxdpSend, Interface: e.Host, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return err
	}
	return pin(l, filepath.Join(e.Dir, sendPin))
}

// ethernetHeader is the size of an Ethernet header in bytes.
const ethernetHeader = 14

// pin pins a link, which then outlives this process, and closes it.
func pin(l link.Link, path string) error { return errors.Join(l.Pin(path), l.Close()) }

// Occupy puts a socket into the map of the lease whose pins are in a directory, if no socket is there. taken reports that
// the lease's own socket is there, that is, that a process has it open. The socket needs only an rx ring; its place is
// free again when it is closed.
func Occupy(dir string, socket int) (taken bool, err error) {
	m, err := ebpf.LoadPinnedMap(filepath.Join(dir, socketPin), nil)
	if err != nil {
		return false, err
	}
	defer m.Close()
	err = m.Update(uint32(0), uint32(socket), ebpf.UpdateNoExist)
	if errors.Is(err, ebpf.ErrKeyExist) {
		return true, nil
	}
	return false, err
}

// Sent counts what the program at the host end of a lease did with the packets that the lease sent.
type Sent struct {
	Sent            uint64 // by the interface
	Local           uint64 // to a lease of the same interface
	DroppedForm     uint64 // not plain UDP over IP: ARP, VLAN, another MAC address, options, other protocols, bad lengths
	DroppedFragment uint64 // an IP fragment
	DroppedSource   uint64 // another source address than those of the interface
	DroppedPort     uint64 // a source port that is not the lease's
	DroppedNobody   uint64 // to this host, where no lease has the packet
}

// ReadSent reads the counters of the lease whose pins are in a directory.
func ReadSent(dir string) (s Sent, err error) {
	m, err := ebpf.LoadPinnedMap(filepath.Join(dir, sentPin), nil)
	if err != nil {
		return s, err
	}
	defer m.Close()
	return readSent(m)
}

func readSent(m *ebpf.Map) (s Sent, err error) {
	var perCPU []uint64
	for v := range sendSendVerdictSEND_VERDICTS {
		if err := m.Lookup(v, &perCPU); err != nil {
			return s, err
		}
		for _, n := range perCPU {
			*s.field(v) += n
		}
	}
	return s, nil
}

// field returns the counter of a verdict.
func (s *Sent) field(v sendSendVerdict) *uint64 {
	switch v {
	case sendSendVerdictSENT:
		return &s.Sent
	case sendSendVerdictSENT_LOCAL:
		return &s.Local
	case sendSendVerdictDROPPED_FORM:
		return &s.DroppedForm
	case sendSendVerdictDROPPED_FRAGMENT:
		return &s.DroppedFragment
	case sendSendVerdictDROPPED_SOURCE:
		return &s.DroppedSource
	case sendSendVerdictDROPPED_PORT:
		return &s.DroppedPort
	case sendSendVerdictDROPPED_NOBODY:
		return &s.DroppedNobody
	case sendSendVerdictSEND_VERDICTS:
	}
	return nil
}

func bigEndian(n uint64) (b [8]byte) {
	binary.BigEndian.PutUint64(b[:], n)
	return b
}

func fromBigEndian(b [8]byte) uint64 { return binary.BigEndian.Uint64(b[:]) }

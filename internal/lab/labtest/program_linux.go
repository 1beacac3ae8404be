package labtest

import (
	"errors"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ProgramName is the name of a [Program] in the kernel.
const ProgramName = "somebody_elses"

// Program is an XDP program that does not belong to datxdp. It redirects each packet to the AF_XDP socket of its queue;
// if the queue has no socket, the packet goes to the kernel.
type Program struct {
	sockets *ebpf.Map
	prog    *ebpf.Program
	link    link.Link
}

// AttachProgram attaches a program to an interface of the calling thread's network namespace.
//
// System calls: bpf(2).
func AttachProgram(name string, generic bool) (p *Program, err error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	p = &Program{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	p.sockets, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 4})
	if err != nil {
		return p, err
	}
	const rxQueueIndex, pass = 16, 2 // of struct xdp_md, of enum xdp_action
	p.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: ProgramName, Type: ebpf.XDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, rxQueueIndex, asm.Word),
			asm.LoadMapPtr(asm.R1, p.sockets.FD()),
			asm.Mov.Imm(asm.R3, pass),
			asm.FnRedirectMap.Call(),
			asm.Return(),
		},
	})
	if err != nil {
		return p, err
	}
	flags := link.XDPDriverMode
	if generic {
		flags = link.XDPGenericMode
	}
	p.link, err = link.AttachXDP(link.XDPOptions{Program: p.prog, Interface: ifi.Index, Flags: flags})
	return p, err
}

// Put registers the AF_XDP socket fd for a queue.
func (p *Program) Put(queue, fd int) error { return p.sockets.Put(uint32(queue), uint32(fd)) }

// Close detaches the program. It may be called again.
func (p *Program) Close() error {
	var err error
	if p.link != nil {
		err = p.link.Close()
		p.link = nil
	}
	return errors.Join(err, p.prog.Close(), p.sockets.Close())
}

// ProgramOn returns the ID of the XDP program on an interface of the calling thread's namespace, or 0 if it has none.
func ProgramOn(name string) (uint32, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return 0, err
	}
	if x := l.Attrs().Xdp; x != nil && x.Attached {
		return x.ProgId, nil
	}
	return 0, nil
}

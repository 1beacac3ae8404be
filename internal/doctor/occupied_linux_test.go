package doctor

import (
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestLinkOfBesideOthers: how a program is attached is found while other processes attach programs.
func TestLinkOfBesideOthers(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	stop := make(chan struct{})
	var others sync.WaitGroup
	defer others.Wait()
	defer close(stop)
	for _, side := range []lab.Side{lab.A, lab.B} {
		others.Go(func() { _ = l.Do(side, func() error { return attachUntil(stop, prog) }) }) // without it the test still passes
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		if _, known := linkOf(1<<31, 1); !known {
			t.Fatal("how a program is attached is not known")
		}
	}
}

// attachUntil attaches and detaches a program.
func attachUntil(stop <-chan struct{}, prog *ebpf.Program) error {
	veth, err := netlink.LinkByName(lab.Interface)
	for err == nil {
		select {
		case <-stop:
			return nil
		default:
		}
		var on link.Link
		if on, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: veth.Attrs().Index, Flags: link.XDPGenericMode}); err == nil {
			err = on.Close()
		}
	}
	return err
}

package labtest

import (
	"errors"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"

	"github.com/datxdp/datxdp/internal/lab"
)

// join forwards the frames of each side to the other and drops a fraction of them.
func (w *Wire) join(part float64) (err error) {
	w.lost, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 2})
	if err != nil {
		return err
	}
	for _, from := range []lab.Side{lab.A, lab.B} {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "lossy_wire", Type: ebpf.SchedCLS, License: "GPL",
			Instructions: lose(part, w.lost.FD(), from.Peer(), w.middle[from.Peer()].Attrs().Index)})
		if err != nil {
			return err
		}
		w.programs = append(w.programs, p)
		if err := w.attach(p, w.middle[from].Attrs().Index); err != nil {
			return err
		}
	}
	return nil
}

// attach attaches a program to the ingress of a device in the middle.
func (w *Wire) attach(p *ebpf.Program, ifindex int) error {
	return w.do(func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: p, Attach: ebpf.AttachTCXIngress})
		if err == nil {
			w.links = append(w.links, l)
		}
		return err
	})
}

// do runs fn in the middle namespace. A thread that cannot return stays locked and ends with its goroutine.
func (w *Wire) do(fn func() error) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	if err = netns.Set(w.ns); err == nil {
		err = fn()
	}
	if back := netns.Set(home); back != nil {
		return errors.Join(err, back)
	}
	runtime.UnlockOSThread()
	return err
}

// lose returns a program that drops and counts a fraction of the frames and sends the others out of a device.
func lose(part float64, lost int, to lab.Side, device int) asm.Instructions {
	const shot = 2 // of TC_ACT
	return asm.Instructions{
		asm.FnGetPrandomU32.Call(),
		asm.LoadImm(asm.R1, int64(part*(1<<32)), asm.DWord),
		asm.JGE.Reg(asm.R0, asm.R1, "send"),
		asm.StoreImm(asm.R10, -4, int64(to), asm.Word),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, lost),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, shot).WithSymbol("drop"),
		asm.Return(),
		asm.Mov.Imm(asm.R1, int32(device)).WithSymbol("send"),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
	}
}

package mesh

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// attach makes the frames that a port receives subject to loss, and adds the map of the port to m.parts. The map has
// the lost part for each last byte of a destination.
func (m *Mesh) attach(ifindex int) error {
	parts, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 256})
	if err != nil {
		return err
	}
	m.parts, m.closers = append(m.parts, parts), append(m.closers, parts.Close)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "mesh_port", Type: ebpf.SchedCLS, License: "GPL", Instructions: lose(parts.FD())})
	if err != nil {
		return err
	}
	m.closers = append(m.closers, p.Close)
	l, err := link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: p, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return err
	}
	m.closers = append(m.closers, l.Close)
	return nil
}

// lose returns a program that drops a frame if a random 32-bit number is below the part of its destination.
func lose(parts int) asm.Instructions {
	const next, shot = -1, 2 // of tcx_action_base
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), // LoadAbs reads the frame of R6
		asm.LoadAbs(5, asm.Byte),    // last byte of the destination address
		asm.StoreMem(asm.R10, -4, asm.R0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, parts),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R7, asm.R0, 0, asm.DWord),
		asm.FnGetPrandomU32.Call(),
		asm.JGE.Reg(asm.R0, asm.R7, "pass"),
		asm.Mov.Imm(asm.R0, shot),
		asm.Return(),
		asm.Mov.Imm(asm.R0, next).WithSymbol("pass"),
		asm.Return(),
	}
}

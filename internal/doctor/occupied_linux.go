package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink/nl"
)

// ours is the name of the steering program in the kernel.
const ours = "datxdp_steer"

// program is an XDP program on an interface. Values that the kernel does not report are zero.
type program struct {
	id   uint32
	name string
	mode string // as ip-link(8) writes it
	// link is the ID of the bpf_link that attaches the program; 0 if netlink attached it. known means that link is
	// certain.
	link  uint32
	known bool
	by    holder
}

// checkProgram names the XDP program that the interface has.
func checkProgram(ctx context.Context, x *exam) []Finding {
	on := x.link.Attrs().Xdp
	if on == nil || !on.Attached {
		return ok("no XDP program is on %s", x.name())
	}
	if on.ProgId == 0 { // the kernel reports an ID only if there is one program
		return manyPrograms(x.name())
	}
	p := program{id: on.ProgId, mode: modeWord(on.AttachMode), name: programName(on.ProgId)}
	p.link, p.known = linkOf(p.id, uint32(x.link.Attrs().Index))
	if p.link != 0 {
		p.by = linkHolder(ctx, p.link)
	}
	if p.by.self() {
		return nil
	}
	return programFinding(x.name(), p)
}

// manyPrograms returns the findings about an interface with one program in the NIC and another in the driver or kernel.
func manyPrograms(ifname string) []Finding {
	var off []string
	for _, mode := range []string{"xdpoffload", "xdpdrv", "xdpgeneric"} {
		off = append(off, fmt.Sprintf("ip link set dev %s %s off", ifname, mode))
	}
	return failure(fmt.Sprintf("XDP programs are on %s in more than one mode", ifname),
		"An interface takes one XDP program in each mode; datxdp never replaces one.",
		"see what they are for (ip -details link show dev "+ifname+"), then take them off, or choose another interface",
		as(strings.Join(off, " && ")))
}

func programFinding(ifname string, p program) []Finding {
	what, fix := "a foreign XDP program", "see what it is for, then take it off, or choose another interface"
	if p.name == ours {
		what, fix = "the XDP program of another datxdp adapter", "stop the program that has it open, or choose another interface; to see how its queues do: datbench doctor --metrics ADDRESS, where it serves metrics"
	}
	command := p.remove(ifname)
	if command == "" {
		fix += "; root sees how it is attached (datbench doctor as root)"
	}
	return failure(fmt.Sprintf("%s is on %s: %s", what, ifname, p),
		"An interface takes one XDP program; datxdp never replaces one.", fix, command)
}

func (p program) String() string {
	s := fmt.Sprintf("id %d", p.id)
	if p.name != "" {
		s += fmt.Sprintf(", %q", p.name)
	}
	switch {
	case !p.known:
		s += ", how it is attached takes root to read"
	case p.link == 0:
		s += ", attached over netlink (" + p.mode + ")"
	case p.by.pid == 0:
		s += fmt.Sprintf(", attached by bpf_link %d that no visible process holds", p.link)
	default:
		s += fmt.Sprintf(", attached by bpf_link %d of %s", p.link, p.by)
	}
	return s
}

// remove returns the command that detaches the program; empty if it is unknown.
func (p program) remove(ifname string) string {
	switch {
	case !p.known:
		return ""
	case strings.HasPrefix(p.name, "xdp_dispatcher"): // libxdp's dispatcher, which has its own state
		return as(fmt.Sprintf("xdp-loader unload %s --all", ifname))
	case p.link == 0:
		return as(fmt.Sprintf("ip link set dev %s %s off", ifname, p.mode))
	case p.by.pid != 0:
		return p.by.stop()
	}
	return as(fmt.Sprintf("bpftool link detach id %d", p.link))
}

// modeWord returns the name that ip-link(8) gives to an XDP_ATTACHED_* value.
func modeWord(mode uint32) string {
	switch mode {
	case nl.XDP_ATTACHED_DRV:
		return "xdpdrv"
	case nl.XDP_ATTACHED_SKB:
		return "xdpgeneric"
	}
	return "xdp"
}

// programName returns the name of a program. It needs CAP_SYS_ADMIN; without it the name is empty.
func programName(id uint32) string {
	p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return ""
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// linkSteps limits a search of links. A step takes about a microsecond.
const linkSteps = 1 << 18

// linkOf returns the ID of the bpf_link that attaches a program to an interface; 0 if there is none. It needs
// CAP_SYS_ADMIN. Without this capability, known is false.
//
// The kernel refuses to open a link that another process is making (EAGAIN), for as long as the attach waits for the
// kernel's lock of network settings. Such a link attaches nothing yet. The iterator ends there without the link's ID, so
// linkOf goes on with the next number.
func linkOf(program, ifindex uint32) (id uint32, known bool) {
	var all link.Iterator
	for range linkSteps {
		id, err := findLink(&all, program, ifindex)
		if err == nil || errors.Is(err, os.ErrPermission) {
			return id, err == nil
		}
		all = link.Iterator{ID: all.ID + 1}
	}
	return 0, false
}

// findLink searches the links of the host that are left.
func findLink(all *link.Iterator, program, ifindex uint32) (id uint32, err error) {
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err == nil && uint32(info.Program) == program && info.XDP() != nil && info.XDP().Ifindex == ifindex {
			return uint32(info.ID), nil
		}
	}
	if err := all.Err(); !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	return 0, nil
}

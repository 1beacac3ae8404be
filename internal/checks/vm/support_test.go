package vm

import "fmt"

// release is a kernel's version.
type release struct{ major, minor int }

func parseRelease(s string) (r release) {
	_, _ = fmt.Sscanf(s, "%d.%d", &r.major, &r.minor) // the zero value is older than any
	return r
}

func (r release) atLeast(o release) bool {
	return r.major > o.major || r.major == o.major && r.minor >= o.minor
}

// support says that a NIC grants a mode since a kernel version, up to an MTU. The values were measured. A kernel that
// grants less fails the test; a kernel that grants more is reported.
type support struct {
	nic, mode string
	since     release
	mtu       int
}

// modes are the modes that can be requested, best first.
var modes = []string{"zero-copy", "copy", "generic"}

const largestMTU = 9000

// Since Linux 6.6 AF_XDP supports packets of several frames. Before, a packet must fit into one frame.
var multiFrame = release{6, 6}

const oneFrame = 3400

var supported = []support{
	{"virtio", "zero-copy", release{6, 13}, 3814},
	{"virtio", "copy", release{6, 3}, largestMTU}, // XDP programs for packets of several buffers
	{"virtio", "copy", release{6, 1}, 3500},
	{"virtio", "generic", release{6, 1}, largestMTU},
	{"plain", "copy", release{6, 3}, largestMTU},
	{"plain", "copy", release{6, 1}, 3500},
	{"plain", "generic", release{6, 1}, largestMTU},
	{"igb", "zero-copy", release{6, 14}, 3046},
	{"igb", "copy", release{6, 1}, 3046},
	{"igb", "generic", release{6, 1}, largestMTU},
	{"vmxnet3", "copy", release{6, 6}, 3494},
	{"vmxnet3", "generic", release{6, 1}, largestMTU},
	{"e1000e", "generic", release{6, 1}, largestMTU},
}

// limit returns the largest MTU at which a NIC should grant a mode; 0 if it should not grant the mode.
func limit(nic, mode string, kernel release) int {
	for _, s := range supported {
		if s.nic == nic && s.mode == mode && kernel.atLeast(s.since) {
			if !kernel.atLeast(multiFrame) {
				return min(s.mtu, oneFrame)
			}
			return s.mtu
		}
	}
	return 0
}

// expected returns the mode that a trial should be granted; empty if it should be refused.
func (c trial) expected(kernel release) string {
	for _, mode := range modes {
		if (c.Asked == mode || c.Asked == "auto") && c.MTU <= limit(c.NIC, mode, kernel) {
			return mode
		}
	}
	if c.Asked == "auto" {
		return "udp"
	}
	return ""
}

package vm

import (
	"os"
	"regexp"
	"slices"
)

// newest is the Debian suite with the newest kernel.
const newest = "trixie-backports"

// listed are the trials of make nics with the newest kernel: every driver in every mode.
var listed = []trial{
	{NIC: "virtio", Asked: "zero-copy", MTU: 1500, Queues: 4},
	{NIC: "virtio", Asked: "zero-copy", MTU: 3800, Queues: 4},
	{NIC: "virtio", Asked: "zero-copy", MTU: 9000, Queues: 4},
	{NIC: "virtio", Asked: "copy", MTU: 1500, Queues: 4},
	{NIC: "virtio", Asked: "copy", MTU: 9000, Queues: 4},
	{NIC: "virtio", Asked: "generic", MTU: 1500, Queues: 2},
	{NIC: "virtio", Asked: "generic", MTU: 9000, Queues: 4},
	{NIC: "virtio", Asked: "auto", MTU: 9000, Queues: 4},
	{NIC: "plain", Asked: "zero-copy", MTU: 1500, Queues: 4},
	{NIC: "plain", Asked: "auto", MTU: 1500, Queues: 4},
	{NIC: "igb", Asked: "zero-copy", MTU: 1500, Queues: 2},
	{NIC: "igb", Asked: "zero-copy", MTU: 1500, Queues: 1},
	{NIC: "igb", Asked: "zero-copy", MTU: 3000, Queues: 1},
	{NIC: "igb", Asked: "copy", MTU: 1500, Queues: 1},
	{NIC: "igb", Asked: "generic", MTU: 1500, Queues: 2},
	{NIC: "igb", Asked: "auto", MTU: 9000, Queues: 1},
	{NIC: "vmxnet3", Asked: "zero-copy", MTU: 1500},
	{NIC: "vmxnet3", Asked: "copy", MTU: 1500},
	{NIC: "vmxnet3", Asked: "generic", MTU: 1500},
	{NIC: "vmxnet3", Asked: "auto", MTU: 9000},
	{NIC: "e1000e", Asked: "copy", MTU: 1500},
	{NIC: "e1000e", Asked: "generic", MTU: 1500},
	{NIC: "e1000e", Asked: "auto", MTU: 9000},
}

// listedOlder are the trials with every other kernel.
var listedOlder = []trial{
	{NIC: "virtio", Asked: "zero-copy", MTU: 1500, Queues: 4},
	{NIC: "virtio", Asked: "copy", MTU: 1500, Queues: 4},
	{NIC: "virtio", Asked: "auto", MTU: 9000, Queues: 4},
	{NIC: "igb", Asked: "zero-copy", MTU: 1500, Queues: 1},
	{NIC: "igb", Asked: "auto", MTU: 1500, Queues: 2},
	{NIC: "vmxnet3", Asked: "copy", MTU: 1500},
	{NIC: "e1000e", Asked: "auto", MTU: 1500},
}

// layers are the kinds of interfaces that are added on top of a NIC.
var layers = []string{"vlan", "bond", "bridge", "macvlan", "ipip", "vxlan"}

// allMTUs are the MTUs of make nics-all.
var allMTUs = []int{1500, 3000, largestMTU}

// chosen returns the trials with the kernel of a suite.
func chosen(suite string, all bool) (out []trial) {
	switch {
	case all:
		out = matrix()
	case suite == newest:
		out = append(out, listed...)
	default:
		out = append(out, listedOlder...)
	}
	if all || suite == newest {
		for _, layer := range layers {
			for _, mode := range []string{"auto", "copy", "generic"} {
				out = append(out, trial{NIC: "virtio", Over: layer, Asked: mode, MTU: 1500})
			}
		}
	}
	return matching(out)
}

// matrix returns a trial for every combination of NIC, mode, MTU and number of queues.
func matrix() (out []trial) {
	for _, n := range nics {
		for _, mode := range append([]string{"auto"}, modes...) {
			for _, mtu := range allMTUs {
				for _, queues := range n.queues {
					out = append(out, trial{NIC: n.name, Asked: mode, MTU: mtu, Queues: queues})
				}
			}
		}
	}
	return out
}

// wanted reports whether a case matches DATXDP_VM_MATCH, a regular expression.
func wanted(name string) bool {
	return regexp.MustCompile(os.Getenv("DATXDP_VM_MATCH")).MatchString(name)
}

// matching returns the wanted trials.
func matching(all []trial) []trial {
	return slices.DeleteFunc(all, func(c trial) bool { return !wanted(c.String()) })
}

// chosenBounds returns a trial for each mode whose largest MTU is searched for.
func chosenBounds(suite string, all bool) (out []trial) {
	if !all && suite != newest {
		return nil
	}
	for _, n := range nics {
		for _, mode := range []string{"zero-copy", "copy"} { // generic mode has no limit
			if c := (trial{NIC: n.name, Asked: mode}); wanted("bound/" + c.String()) {
				out = append(out, c)
			}
		}
	}
	return out
}

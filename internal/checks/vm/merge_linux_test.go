package vm

import (
	"cmp"
	"slices"
	"testing"
)

// merge adds the findings of a later run. They replace the findings of the same trials.
func (f *findings) merge(later *findings) {
	f.Command = cmp.Or(f.Command, later.Command)
	f.Kernels = union(f.Kernels, later.Kernels)
	f.Skipped = later.Skipped
	f.Trials = replace(f.Trials, later.Trials, sameTrial)
	f.Bounds = replace(f.Bounds, later.Bounds, sameTrial)
	f.Faults = replace(f.Faults, later.Faults, func(a, b fault) bool { return a.Name == b.Name && a.Kernel == b.Kernel })
}

// sameTrial reports whether two outcomes have the same trial. For a bound the MTU is a result and is not compared.
func sameTrial(a, b outcome) bool {
	return a.Kernel == b.Kernel && a.NIC == b.NIC && a.Over == b.Over && a.Asked == b.Asked && a.Queues == b.Queues &&
		(a.MTU == b.MTU || a.Tries == 0)
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

func replace[T any](old, later []T, same func(a, b T) bool) []T {
	for _, n := range later {
		if i := slices.IndexFunc(old, func(o T) bool { return same(o, n) }); i >= 0 {
			old[i] = n
		} else {
			old = append(old, n)
		}
	}
	return old
}

func TestMerge(t *testing.T) {
	trialOf := func(asked string, mtu int) outcome {
		return outcome{trial: trial{NIC: "igb", Asked: asked, MTU: mtu}, Kernel: "7.3", Tries: 1}
	}
	bound := func(mtu int) outcome {
		return outcome{trial: trial{NIC: "igb", Asked: "copy", MTU: mtu}, Kernel: "7.3"}
	}
	f := findings{Trials: []outcome{trialOf("copy", 1500), trialOf("auto", 1500)}, Bounds: []outcome{bound(3000)}, Faults: []fault{{Name: "a"}, {Name: "b"}}}
	again := trialOf("auto", 1500)
	again.Granted = "copy"
	f.merge(&findings{Kernels: []string{"7.3"}, Trials: []outcome{again, trialOf("auto", 9000)}, Bounds: []outcome{bound(3046)}, Faults: []fault{{Name: "b", Seen: "x"}}})
	if len(f.Trials) != 3 || f.Trials[1].Granted != "copy" || len(f.Bounds) != 1 || f.Bounds[0].MTU != 3046 || len(f.Faults) != 2 || f.Faults[1].Seen != "x" {
		t.Errorf("got %+v", f)
	}
}

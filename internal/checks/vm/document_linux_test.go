package vm

import (
	"fmt"
	"strings"
)

const preamble = `# Drivers

Written by ` + "`%s`" + `: edit internal/checks/vm, not this. Emulated NICs of qemu under Debian's kernels, two NICs in two network namespaces of one machine,
joined by a bridge of the host. Modes and transfers are those of the same driver with a real NIC; emulation says nothing about speed.

* Kernels: %s.
* Every transfer is 512 KiB each of sends, RDMA writes and RDMA reads, compared by SHA-256.
* Debian's virtio_net is a module, for which zero-copy is refused: fault ` + "`module`" + `. All other rows show the driver as it is where it is
  built into the kernel: the machine hides the module, and reserves the memory from which the device reads the wrong headers.
* [LINKS.md](LINKS.md) explains the modes; [TROUBLESHOOTING.md](TROUBLESHOOTING.md) what to do about a refusal.
`

// document returns the text of docs/DRIVERS.md.
func (f *findings) document() string {
	var b strings.Builder
	fmt.Fprintf(&b, preamble, f.Command, strings.Join(f.Kernels, ", "))
	for _, s := range f.Skipped {
		fmt.Fprintf(&b, "* Skipped: %s.\n", s)
	}
	section(&b, "Largest MTU of each mode", f.Bounds, boundColumns)
	section(&b, "Modes", f.of(func(o outcome) bool { return o.Over == "" }), trialColumns)
	section(&b, "Interfaces on top of a NIC", f.of(func(o outcome) bool { return o.Over != "" }), layerColumns)
	section(&b, "Faults of drivers", f.Faults, faultColumns)
	return b.String()
}

// of returns the trials of a section.
func (f *findings) of(is func(outcome) bool) (out []outcome) {
	for _, o := range f.Trials {
		if is(o) {
			out = append(out, o)
		}
	}
	return out
}

// column is a column of a table.
type column[T any] struct {
	head string
	cell func(*T) string
}

func section[T any](b *strings.Builder, title string, rows []T, columns []column[T]) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	var heads, rules []string
	for _, c := range columns {
		heads, rules = append(heads, c.head), append(rules, "---")
	}
	line(b, heads)
	line(b, rules)
	for i := range rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, strings.ReplaceAll(c.cell(&rows[i]), "|", `\|`))
		}
		line(b, cells)
	}
}

func line(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func driver(o *outcome) string { return nicNamed(o.NIC).driver }
func kernel(o *outcome) string { return short(o.Kernel) }
func asked(o *outcome) string  { return o.Asked }

// short returns a kernel version without Debian's suffix.
func short(kernel string) string {
	version, _, _ := strings.Cut(kernel, "+")
	return strings.TrimSuffix(version, "-amd64")
}

func queues(o *outcome) string {
	if o.Queues == 0 {
		return "as it is"
	}
	return fmt.Sprint(o.Queues)
}

// seen describes the outcome of a trial.
func seen(o *outcome) string {
	switch {
	case o.Trouble != "":
		return "**fails**: " + o.Trouble
	case o.Refusal != "":
		return "refused: " + o.Refusal
	case o.Right:
		return fmt.Sprintf("%s; %d resent, %d dropped", o.Granted, o.Resent, o.Drops)
	}
	return o.Granted
}

func boundOf(o *outcome) string {
	switch {
	case o.MTU == 0:
		return "not granted"
	case o.MTU == largestMTU:
		return fmt.Sprintf("%d, the largest that was tried", o.MTU)
	}
	return fmt.Sprint(o.MTU)
}

func refusalOf(o *outcome) string { return o.Refusal }

var boundColumns = []column[outcome]{
	{"driver", driver}, {"kernel", kernel}, {"mode", asked}, {"up to MTU", boundOf}, {"above, or at any", refusalOf},
}

var trialColumns = []column[outcome]{
	{"driver", driver}, {"kernel", kernel}, {"asked", asked}, {"MTU", func(o *outcome) string { return fmt.Sprint(o.MTU) }},
	{"queues", queues}, {"granted, or why not", seen},
}

var layerColumns = []column[outcome]{
	{"interface", func(o *outcome) string { return o.Over }}, {"on", driver}, {"kernel", kernel}, {"asked", asked}, {"granted, or why not", seen},
}

var faultColumns = []column[fault]{
	{"fault", func(f *fault) string { return f.Name }}, {"driver", func(f *fault) string { return nicNamed(f.NIC).driver }},
	{"kernel", func(f *fault) string { return short(f.Kernel) }}, {"what the driver does", func(f *fault) string { return f.About }},
	{"seen", func(f *fault) string {
		if f.Holds {
			return f.Seen
		}
		return "**fails**: " + f.Seen
	}},
}

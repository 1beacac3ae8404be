package vm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// trial is one case: a request to a pair of NICs.
type trial struct {
	NIC string
	// Over is the kind of interface on top of the NIC; empty for none.
	Over string `json:",omitempty"`
	// Asked is the mode in the adapter's name, or "auto".
	Asked       string
	MTU, Queues int
}

func (c trial) String() string {
	name := fmt.Sprintf("%s/%s/%d", c.NIC, c.Asked, c.MTU)
	if c.Over != "" {
		name = c.Over + "-over-" + name
	}
	if c.Queues > 0 {
		name += fmt.Sprintf("/%d", c.Queues)
	}
	return name
}

// device returns the interface that the adapter opens.
func (c trial) device() string {
	if c.Over != "" {
		return "over"
	}
	return c.NIC
}

// adapter returns the adapter's name for datbench.
func (c trial) adapter() string {
	if c.Asked == "auto" {
		return "auto:" + c.device()
	}
	return "xdp:" + c.device() + "," + c.Asked
}

// outcome is the result of a trial with one kernel.
type outcome struct {
	trial
	Kernel string
	// Granted is the granted mode. It is empty if the adapter was refused; Refusal then has the reason.
	Granted string `json:",omitempty"`
	Refusal string `json:",omitempty"`
	// Right means that all data that was sent, written and read has arrived unchanged.
	Right         bool   `json:",omitempty"`
	Trouble       string `json:",omitempty"`
	Resent, Drops int64
	Seconds       float64
	// Tries is above 1 if the machine had too little CPU time at first.
	Tries int
}

func (o *outcome) String() string {
	switch {
	case o.Trouble != "":
		return o.Trouble
	case o.Refusal != "":
		return "refused: " + o.Refusal
	}
	return fmt.Sprintf("mode %s, right %v, %d resent, %d dropped", o.Granted, o.Right, o.Resent, o.Drops)
}

var (
	serving = regexp.MustCompile(`(?m)^serving on .* mode (\S+)$`)
	// refused matches datbench's error for an adapter that cannot be opened.
	refused = regexp.MustCompile(`(?m)^datbench: dat: opening (?:xdp|auto|udp):\S+: (.*)$`)
)

// opened parses the output of the guest's command open.
func (o *outcome) opened(out string) {
	if m := serving.FindStringSubmatch(out); m != nil {
		o.Granted = m[1]
	} else if m := refused.FindStringSubmatch(out); m != nil {
		o.Refusal = strings.TrimPrefix(m[1], "xdp: ")
	} else {
		o.Trouble = strings.TrimSpace(out)
	}
}

// transfers is the number of rows of a transfer: send, write, read.
const transfers = 3

// transferred parses the output of the guest's command transfer, which has this number of rows.
func (o *outcome) transferred(out string, rows int) {
	if m := refused.FindStringSubmatch(out); m != nil {
		o.Refusal = strings.TrimPrefix(m[1], "xdp: ")
		return
	}
	out, text, found := strings.Cut(out, "\n{")
	var r struct{ Results []row }
	if err := json.NewDecoder(strings.NewReader("{" + text)).Decode(&r); !found || err != nil {
		o.Trouble = lastLines(out)
		return
	}
	o.Right = len(r.Results) == rows
	for _, row := range r.Results {
		o.Granted = row.Mode
		o.Right = o.Right && row.Valid
		o.Resent += row.Retransmits
		o.Drops += row.Drops
	}
	if !o.Right {
		o.Trouble = lastLines(out)
	}
}

// row has the fields of datbench's rows that the test uses.
type row struct {
	Op, Mode, Reason   string
	Retransmits, Drops int64
	Valid              bool
}

// progress matches the lines that do not concern the end of the run.
var progress = regexp.MustCompile(`(?m)^(\[.*|op .*|─*|\d+ × .*|serving on .*|counters of .*|)$\n?`)

// lastLines returns the lines that show why a run failed.
func lastLines(out string) string {
	lines := strings.Split(strings.TrimSpace(progress.ReplaceAllString(out, "")), "\n")
	return strings.Join(lines[max(0, len(lines)-6):], "; ")
}

var channels = regexp.MustCompile(`ethtool -L \S+ combined (\d+)`)

// remedy returns the number of queues that a refusal recommends; 0 if it does not.
func (o *outcome) remedy() int {
	if m := channels.FindStringSubmatch(o.Refusal); m != nil {
		n, _ := strconv.Atoi(m[1]) // the pattern matches digits only
		return n
	}
	return 0
}

// starved reports whether the reason may be that the machine had too little CPU time.
func (o *outcome) starved() bool {
	return o.Trouble != "" && !strings.Contains(o.Trouble, "differs")
}

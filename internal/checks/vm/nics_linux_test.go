package vm

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// mostTries is how often a trial is repeated if the machine may have had too little CPU time.
const mostTries = 3

// TestNICs tests the drivers of emulated NICs with each kernel, and writes the results to the document.
func TestNICs(t *testing.T) {
	if os.Getenv("DATXDP_VM_QEMU") == "" {
		t.Skip("boots machines with emulated NICs: make nics")
	}
	seen := &findings{Command: "make nics"}
	all := os.Getenv("DATXDP_VM_ALL") != ""
	if all {
		seen.Command = "make nics-all"
	}
	t.Cleanup(func() { seen.save(t) })
	for _, k := range kernels(t) {
		t.Run(k.suite, func(t *testing.T) {
			if k.dir == "" {
				seen.Skipped = append(seen.Skipped, k.suite+": "+k.why)
				t.Skip(k.why)
			}
			if only := os.Getenv("DATXDP_VM_ONLY"); only != "" && only != k.suite {
				t.Skip("another kernel is asked for")
			}
			runKernel(t, k, seen, all)
		})
	}
}

func runKernel(t *testing.T, k fetched, seen *findings, all bool) {
	begin := time.Now()
	g := bootNICs(t, k)
	t.Logf("Linux %s is up after %.0f s", g.kernel, time.Since(begin).Seconds())
	seen.Kernels = append(seen.Kernels, g.kernel)
	for _, c := range chosen(k.suite, all) {
		t.Run(c.String(), func(t *testing.T) { seen.add(g.try(t, c)) })
	}
	for _, b := range chosenBounds(k.suite, all) {
		t.Run(fmt.Sprintf("bound/%s/%s", b.NIC, b.Asked), func(t *testing.T) { seen.Bounds = append(seen.Bounds, g.bound(t, b)) })
	}
	for _, f := range faultsOf(k.suite, all) {
		t.Run("fault/"+f.Name, func(t *testing.T) { seen.Faults = append(seen.Faults, g.provoke(t, f)) })
	}
	g.checkLog(t)
	seen.Seconds += time.Since(begin).Seconds()
}

// try runs a trial and compares the outcome with what its kernel should grant.
func (g *guest) try(t *testing.T, c trial) outcome {
	o := outcome{trial: c, Kernel: g.kernel}
	begin := time.Now()
	for o.Tries = 1; ; o.Tries++ {
		again := o
		again.run(t, g)
		if !again.starved() || o.Tries == mostTries {
			o = again
			break
		}
		t.Logf("again: %s", again.Trouble)
	}
	o.Seconds = time.Since(begin).Seconds()
	t.Logf("%.1f s, try %d: %v", o.Seconds, o.Tries, &o)
	o.judge(t)
	return o
}

// run runs a trial once.
func (o *outcome) run(t *testing.T, g *guest) {
	if out, err := g.do(t, "set", o.NIC, fmt.Sprint(o.MTU), fmt.Sprint(o.Queues)); err != nil {
		o.Trouble = strings.TrimSpace(out)
		return
	}
	defer g.do(t, "unset", o.NIC) //nolint:errcheck // the next trial sets it up again
	if o.Over != "" {
		if out, err := g.do(t, "over", o.Over, o.NIC); err != nil {
			o.Trouble = strings.TrimSpace(out)
			return
		}
		defer g.do(t, "unover", o.NIC) //nolint:errcheck // the next trial adds it again
	}
	out, err := g.do(t, "transfer", o.adapter(), "--op send,write,read --metric sha256 --bytes 512KiB --size 16KiB")
	o.transferred(out, transfers)
	if err != nil && o.Trouble == "" && o.Refusal == "" {
		o.Trouble = lastLines(out)
	}
	if o.Trouble != "" {
		t.Logf("%s", out)
	}
}

// judge fails the test if less was granted than this kernel should grant, or if the transferred data is wrong.
func (o *outcome) judge(t *testing.T) {
	t.Helper()
	if o.Over != "" {
		if o.Trouble != "" {
			t.Error(o.Trouble)
		}
		return
	}
	want := o.expected(parseRelease(o.Kernel))
	switch {
	case o.Trouble != "":
		t.Error(o.Trouble)
	case o.remedy() > 0: // the fault spare checks whether the remedy works
	case o.Granted == want:
	case slices.Contains(modes, o.Granted) && (want == "" || slices.Index(modes, o.Granted) < slices.Index(modes, want)):
		t.Logf("%s grants %s, which is more than support_test.go knows: %q", o.Kernel, o.Granted, want)
	default:
		t.Errorf("granted %q (%s), want %q", o.Granted, o.Refusal, want)
	}
}

// bound searches for the largest MTU at which a mode is granted.
func (g *guest) bound(t *testing.T, c trial) outcome {
	o := outcome{trial: c, Kernel: g.kernel} // Tries is 0 for a bound
	begin := time.Now()
	granted := func(mtu int) bool {
		o.Granted, o.Refusal, o.Trouble = "", "", ""
		out, _ := g.do(t, "open", c.adapter(), c.NIC, fmt.Sprint(mtu)) // the output has the result
		if o.opened(out); o.Trouble != "" {
			t.Errorf("MTU %d: %s", mtu, o.Trouble)
		}
		return o.Granted == c.Asked
	}
	if out, err := g.do(t, "set", c.NIC, "1500", "0"); err != nil {
		t.Error(out)
	}
	want := limit(c.NIC, c.Asked, parseRelease(g.kernel))
	o.MTU = search(want, granted)
	if o.MTU > 0 && o.MTU < largestMTU {
		granted(o.MTU + 1) // records the refusal for the document
	}
	if o.MTU < want {
		t.Errorf("%s is granted up to MTU %d, want %d: %s", c.Asked, o.MTU, want, o.Refusal)
	}
	o.Seconds = time.Since(begin).Seconds()
	t.Logf("%.1f s: up to MTU %d, then %s", o.Seconds, o.MTU, o.Refusal)
	return o
}

const leastMTU = 1280

// search returns the largest MTU that is granted; 0 if none is. It tries the expected MTU first.
func search(expected int, granted func(int) bool) int {
	low := 0 // largest MTU known to be granted
	if expected > 0 && expected < largestMTU && granted(expected) {
		if low = expected; !granted(expected + 1) {
			return expected
		}
		low++
	}
	if low == 0 {
		if !granted(leastMTU) {
			return 0
		}
		low = leastMTU
	}
	if granted(largestMTU) {
		return largestMTU
	}
	for high := largestMTU; high-low > 1; {
		if middle := (low + high) / 2; granted(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// checkLog checks that the kernel log has no complaint.
func (g *guest) checkLog(t *testing.T) {
	t.Helper()
	out, err := g.ssh(t, nil, "dmesg")
	if err != nil || trouble.MatchString(out) {
		t.Errorf("the kernel complains: %v %s", err, trouble.FindString(out))
	}
}

// findings holds the outcomes of all trials.
type findings struct {
	Command          string
	Kernels, Skipped []string
	Trials, Bounds   []outcome
	Faults           []fault
	Seconds          float64
}

func (f *findings) add(o outcome) { f.Trials = append(f.Trials, o) }

// partial reports whether only some kernels or cases are requested.
func partial() bool { return os.Getenv("DATXDP_VM_ONLY") != "" || os.Getenv("DATXDP_VM_MATCH") != "" }

// save writes the findings to bin/vm/nics.json and the document. A partial run replaces only the trials that it
// repeated.
func (f *findings) save(t *testing.T) {
	t.Helper()
	const file = root + "/bin/vm/nics.json"
	all := f
	if partial() {
		all = new(findings)
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, all) != nil {
			all = new(findings) // written by another version of this test
		}
		all.merge(f)
		all.Command = f.Command + ", in parts"
	}
	data, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err == nil {
		err = os.WriteFile(os.Getenv("DATXDP_VM_DRIVERS"), []byte(all.document()), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

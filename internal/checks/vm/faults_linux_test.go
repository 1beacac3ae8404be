package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fault is an event that real drivers cause and veth does not, and its outcome.
type fault struct {
	Name, NIC, About string
	Kernel           string
	// Seen is what happened. Holds means that it is correct.
	Seen    string
	Holds   bool
	Seconds float64
	// older means that the fault is also tested with older kernels.
	older bool
	run   func(*testing.T, *guest, *fault)
}

// brief transfers little with each operation. verified transfers enough to unplug the cable during the transfer, after some
// of its 750 packets.
const (
	brief    = "--op send,write,read --metric sha256 --bytes 64KiB --size 16KiB"
	verified = "--op write --metric sha256 --bytes 1MiB --size 16KiB"
	middle   = 150
)

var faults = []fault{
	{Name: "queues-at-attach/copy/1-of-4", NIC: "virtio", About: "the driver adds queues when an XDP program is attached", older: true,
		run: func(t *testing.T, g *guest, f *fault) { f.spare(t, g, "copy", 1) }},
	{Name: "queues-at-attach/copy/2-of-4", NIC: "virtio", About: "the same, one queue a processor", older: true,
		run: func(t *testing.T, g *guest, f *fault) { f.spare(t, g, "copy", 2) }},
	{Name: "queues-at-attach/zero-copy/1-of-4", NIC: "virtio", About: "the same in zero-copy mode",
		run: func(t *testing.T, g *guest, f *fault) { f.spare(t, g, "zero-copy", 1) }},
	{Name: "queues-at-attach/zero-copy/2-of-4", NIC: "virtio", About: "the same, one queue a processor",
		run: func(t *testing.T, g *guest, f *fault) { f.spare(t, g, "zero-copy", 2) }},
	{Name: "module", NIC: "virtio", About: "as a loaded module it sends frames with a wrong header in zero-copy mode",
		run: func(t *testing.T, g *guest, f *fault) { f.module(t, g) }},
	{Name: "ring-512", NIC: "igb", About: "receive rings hold as many frames as the socket has hot",
		run: func(t *testing.T, g *guest, f *fault) { f.ring(t, g, 512) }},
	{Name: "ring-1024", NIC: "igb", About: "receive rings hold more frames than the socket has hot",
		run: func(t *testing.T, g *guest, f *fault) { f.ring(t, g, 1024) }},
	{Name: "carrier-wait", NIC: "igb", About: "the driver resets the link when a program is attached: a run right after opening waits for it",
		run: func(t *testing.T, g *guest, f *fault) { f.atOnce(t, g) }},
	{Name: "carrier-flap", NIC: "igb", About: "the cable is out for 0.3 s in the middle of a transfer in zero-copy mode",
		run: func(t *testing.T, g *guest, f *fault) { f.unplug(t, g, "zero-copy", 300*time.Millisecond) }},
	{Name: "carrier-lost", NIC: "igb", About: "the cable is out for 3 s in the middle of a transfer in zero-copy mode",
		run: func(t *testing.T, g *guest, f *fault) { f.unplug(t, g, "zero-copy", 3*time.Second) }},
	{Name: "carrier-lost/copy", NIC: "virtio", About: "the same in copy mode, with a driver that does not reset its link",
		run: func(t *testing.T, g *guest, f *fault) { f.unplug(t, g, "copy", 3*time.Second) }},
}

// faultsOf returns the faults to test with the kernel of a suite.
func faultsOf(suite string, all bool) (out []fault) {
	for _, f := range faults {
		if (suite == newest || f.older || all && f.NIC == "virtio") && wanted("fault/"+f.Name) {
			out = append(out, f)
		}
	}
	return out
}

// provoke causes a fault, and fails the test if its outcome is wrong.
func (g *guest) provoke(t *testing.T, f fault) fault {
	f.Kernel = g.kernel
	begin := time.Now()
	f.run(t, g, &f)
	f.Seconds = time.Since(begin).Seconds()
	f.Holds = f.Holds && !t.Failed()
	t.Logf("%.1f s: %s", f.Seconds, f.Seen)
	if !f.Holds {
		t.Errorf("%s: %s", f.Name, f.Seen)
	}
	return f
}

// spare opens an interface with spare queue pairs. It must work, or the error must name a number of queues that works.
func (f *fault) spare(t *testing.T, g *guest, mode string, queues int) {
	o := g.try(t, trial{NIC: f.NIC, Asked: mode, MTU: 1500, Queues: queues})
	f.Seen = o.String()
	if n := o.remedy(); n > 0 {
		o = g.try(t, trial{NIC: f.NIC, Asked: mode, MTU: 1500, Queues: n})
		f.Seen += fmt.Sprintf("; with %d queues %v", n, &o)
	}
	f.Holds = o.Trouble == "" && o.Right
}

// module shows that the driver is a module. Zero-copy must then be refused, and auto must grant copy mode.
func (f *fault) module(t *testing.T, g *guest) {
	if !f.use(t, g) {
		return
	}
	if out, err := g.do(t, "modules", "shown"); err != nil {
		t.Fatal(out)
	}
	defer g.do(t, "modules", "hidden") //nolint:errcheck // a later trial in zero-copy mode fails then
	run := func(mode string) (o outcome) {
		out, _ := g.do(t, "transfer", trial{NIC: f.NIC, Asked: mode}.adapter(), brief) // the output has the result
		o.transferred(out, transfers)
		return o
	}
	asked, auto := run("zero-copy"), run("auto")
	f.Seen = fmt.Sprintf("%v; auto: %v", &asked, &auto)
	f.Holds = strings.Contains(asked.Refusal, "loaded module") && auto.Granted == "copy" && auto.Right
}

// use sets up the pair without spare queues, and reports whether this worked.
func (f *fault) use(t *testing.T, g *guest) bool {
	t.Helper()
	out, err := g.do(t, "set", f.NIC, "1500", fmt.Sprint(nicNamed(f.NIC).queues[0]))
	if err != nil {
		f.Seen = strings.TrimSpace(out)
	}
	return err == nil
}

var calls = regexp.MustCompile(`(?m)^calls (\d+)$`)

// ring counts the system calls on AF_XDP sockets during round trips. An idle poll must make none.
func (f *fault) ring(t *testing.T, g *guest, slots int) {
	if !f.use(t, g) {
		return
	}
	defer g.do(t, "rings", f.NIC, "256") //nolint:errcheck // the driver's default
	if out, err := g.do(t, "rings", f.NIC, fmt.Sprint(slots)); err != nil {
		f.Seen = strings.TrimSpace(out)
		return
	}
	const trips = 1000 // the smallest number that datbench accepts
	out, err := g.do(t, "counted", trial{NIC: f.NIC, Asked: "zero-copy"}.adapter(), fmt.Sprintf("--op send --metric lat --count %d", trips))
	m := calls.FindStringSubmatch(out)
	if m == nil || err != nil && !strings.Contains(out, tooFew) {
		f.Seen = fmt.Sprintf("%v: %s", err, lastLines(out))
		return
	}
	n, _ := strconv.Atoi(m[1]) // the pattern matches digits only
	f.Seen = fmt.Sprintf("%d round trips with %d system calls on AF_XDP sockets", trips, n)
	f.Holds = 0 < n && n < callsPerTrip*trips // none: they were not counted
}

// tooFew is the reason for an invalid short row. The figures are not needed here.
const tooFew = "samples are too few"

// callsPerTrip is the largest accepted number of system calls per round trip, at both ends together. Each end needs one
// to send and one to sleep or to wake the driver. The rest allows for a slow processor. A call on every idle poll would
// make hundreds.
const callsPerTrip = 20

// atOnce measures directly after opening, several times, without a second try.
func (f *fault) atOnce(t *testing.T, g *guest) {
	const runs = 3
	if !f.use(t, g) {
		return
	}
	for i := range runs {
		var o outcome
		out, _ := g.do(t, "transfer", trial{NIC: f.NIC, Asked: "zero-copy"}.adapter(), brief)
		if o.transferred(out, transfers); !o.Right {
			f.Seen = fmt.Sprintf("run %d of %d: %v", i+1, runs, &o)
			return
		}
	}
	f.Seen, f.Holds = fmt.Sprintf("%d runs, right", runs), true
}

// unplug unplugs the cable for a while during a transfer. No data may be lost, and the same server must continue.
func (f *fault) unplug(t *testing.T, g *guest, mode string, down time.Duration) {
	if !f.use(t, g) {
		return
	}
	before := g.delivered(t, f.NIC)
	// By default datbench gives up a peer that is silent for 3 s.
	end := g.begin(t, fmt.Sprintf("transfer '%s silence=%v' %s", trial{NIC: f.NIC, Asked: mode}.adapter(), down+10*time.Second, verified))
	for deadline := time.Now().Add(time.Minute); g.delivered(t, f.NIC) < before+middle && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	g.monitor.carrier(t, nicNamed(f.NIC), 1, false)
	time.Sleep(down) // the fault itself
	g.monitor.carrier(t, nicNamed(f.NIC), 1, true)
	var o outcome
	o.transferred(end(), 1)
	f.Holds = o.Right
	f.Seen = fmt.Sprintf("the transfer went on and is right, %d resent", o.Resent)
	if !f.Holds {
		f.Seen = o.String()
	}
}

// delivered returns the number of packets that the bridge has sent to the first end of a pair.
func (g *guest) delivered(t *testing.T, name string) int {
	t.Helper()
	data, err := os.ReadFile("/proc/net/dev") // shows this network namespace, unlike sysfs
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		// After the name there are eight receive fields, then the transmitted bytes and packets.
		if fields := strings.Fields(line); len(fields) > 10 && fields[0] == name+"0:" {
			n, _ := strconv.Atoi(fields[10]) // always a number
			return n
		}
	}
	t.Fatalf("no tap %s0", name)
	return 0
}

// begin starts a command of nics-guest.sh. The returned function waits for its end.
func (g *guest) begin(t *testing.T, command string) func() string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), caseLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "ssh", "-F", g.config, g.name(), "/run/nics "+command)
	cmd.WaitDelay = time.Second
	done := make(chan string, 1)
	go func() {
		out, err := cmd.CombinedOutput()
		done <- fmt.Sprintf("%s\n%v", out, err)
	}()
	return func() string { return <-done }
}

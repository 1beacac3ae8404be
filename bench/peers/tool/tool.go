package tool

import (
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// Tool is a program that measures a peer.
type Tool struct {
	// Name is what --peer calls it, Title what the table does.
	Name, Title string
	// Program is what is run, Package what Debian has it in; both are empty for what is built in.
	Program, Package string
	version          func() string
}

// The tools that Debian has.
var (
	UCX = &Tool{"ucx", "UCX", "ucx_perftest", "ucx-utils",
		says(`(?m)^# (?:Library version: |Version )([\d.]+)`, "ucx_info", "-v")}
	Libfabric = &Tool{"libfabric", "libfabric", "fi_pingpong", "libfabric-bin",
		says(`(?m)^libfabric: ([\d.]+)`, "fi_info", "--version")}
	Sockperf = &Tool{"sockperf", "sockperf", "sockperf", "sockperf", says(`version ([\d.]+)`, "sockperf", "--version")}
	Iperf3   = &Tool{"iperf3", "iperf3", "iperf3", "iperf3", says(`(?m)^iperf ([\d.]+)`, "iperf3", "--version")}
	Ethtool  = &Tool{"ethtool", "ethtool", "ethtool", "ethtool", says(`version ([\d.]+)`, "ethtool", "--version")}
)

// Peers are the tools that measure, in the order of the table.
func Peers() []*Tool { return []*Tool{UCX, Libfabric, Sockperf, Iperf3, Net, QUIC, GRPC} }

// says is the version that a command prints, some with a status that is not 0.
func says(where string, command ...string) func() string {
	return func() string {
		out, _ := exec.Command(command[0], command[1:]...).CombinedOutput()
		if m := regexp.MustCompile(where).FindSubmatch(out); m != nil {
			return string(m[1])
		}
		return ""
	}
}

// Missing says what to install where the program is not there; empty if it is, or is built in.
func (t *Tool) Missing() string {
	if t.Program == "" {
		return ""
	}
	if _, err := exec.LookPath(t.Program); err == nil {
		return ""
	}
	return t.Program + " is not installed: apt-get install " + t.Package
}

// Version asks the program; empty if it does not say.
func (t *Tool) Version() string { return t.version() }

// Command is how one side is started.
type Command struct {
	Env  []string
	Args []string
}

// String is the command as a shell takes it.
func (c Command) String() string {
	words := slices.Clone(c.Env)
	for _, a := range c.Args {
		if strings.ContainsAny(a, " ;*&|$") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// WithoutOffloads switches off what lets the kernel send frames that are larger than the MTU.
func WithoutOffloads(ifname string) Command {
	return Command{Args: []string{Ethtool.Program, "-K", ifname, "tso", "off", "gso", "off", "gro", "off"}}
}

// Port is where a server listens once it is ready.
type Port struct {
	Protocol string // tcp or udp
	Number   uint16
}

// Job is what one run of a test is asked for.
type Job struct {
	// Host is the server's address, Interface the client's way there.
	Host, Interface string
	Duration        time.Duration
	// Count ends the run of a tool that takes no time.
	Count int64
}

// seconds is the duration for tools that know whole seconds only.
func (j Job) seconds() int { return max(1, int(math.Ceil(j.Duration.Seconds()))) }

// Test is one measurement by a tool.
type Test struct {
	Tool *Tool
	// What tells it from the other tests of the tool.
	What string
	// Metric is result.Latency, Rate or Bandwidth; Size the bytes of a message.
	Metric string
	Size   int64
	// Against is our operation that does the same: result.Send, Write or Read.
	Against string
	// Mean is set where a latency is the mean: the tool has no percentiles.
	Mean bool
	// Unfair says why the figure is not one to compare with; empty if it is.
	Unfair string
	// FirstCount is the Count to begin with, of a tool that takes no time; 0 for others.
	FirstCount int64

	Server, Client func(Job) Command
	Port           Port
	// Parse fills in the client's figures: P50 and P99, or MsgsPerSec and Gbps. For a tool with a FirstCount it always
	// sets MsgsPerSec; in a latency test these are round trips per second.
	Parse func(out string, r *result.Result) error
}

// Title is the test's name in the table.
func (t *Test) Title() string { return t.Tool.Title + " " + t.What }

// LastLine is the last line that is not empty, for a message.
func LastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func micros(v float64) *float64 { return &v }

// Tests are all that measure a metric. self is this program.
func Tests(self, metric string) []Test {
	return slices.Concat(UCXTests(metric), LibfabricTests(metric), SockperfTests(metric), Iperf3Tests(metric), GoTests(self, metric))
}

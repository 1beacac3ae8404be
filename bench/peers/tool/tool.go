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

// Tool is a benchmark program for a peer.
type Tool struct {
	// Name is the name for --peer, and Title the name in the table.
	Name, Title string
	// Program is the executable, and Package its Debian package. Both are empty for a library of this program.
	Program, Package string
	version          func() string
}

// The tools in Debian.
var (
	UCX = &Tool{"ucx", "UCX", "ucx_perftest", "ucx-utils",
		says(`(?m)^# (?:Library version: |Version )([\d.]+)`, "ucx_info", "-v")}
	Libfabric = &Tool{"libfabric", "libfabric", "fi_pingpong", "libfabric-bin",
		says(`(?m)^libfabric: ([\d.]+)`, "fi_info", "--version")}
	Sockperf = &Tool{"sockperf", "sockperf", "sockperf", "sockperf", says(`version ([\d.]+)`, "sockperf", "--version")}
	Iperf3   = &Tool{"iperf3", "iperf3", "iperf3", "iperf3", says(`(?m)^iperf ([\d.]+)`, "iperf3", "--version")}
	Ethtool  = &Tool{"ethtool", "ethtool", "ethtool", "ethtool", says(`version ([\d.]+)`, "ethtool", "--version")}
)

// Peers returns the tools that measure, in the order of the table.
func Peers() []*Tool { return []*Tool{UCX, Libfabric, Sockperf, Iperf3, Net, TLS, QUIC, GRPC} }

// says returns a function that runs a command and finds its version in the output. It accepts an exit status other than
// 0.
func says(where string, command ...string) func() string {
	return func() string {
		out, _ := exec.Command(command[0], command[1:]...).CombinedOutput()
		if m := regexp.MustCompile(where).FindSubmatch(out); m != nil {
			return string(m[1])
		}
		return ""
	}
}

// Missing returns what to install if the program is missing; empty if the program exists or is part of this one.
func (t *Tool) Missing() string {
	if t.Program == "" {
		return ""
	}
	if _, err := exec.LookPath(t.Program); err == nil {
		return ""
	}
	return t.Program + " is not installed: apt-get install " + t.Package
}

// Version returns the version that the program reports; empty if it reports none.
func (t *Tool) Version() string { return t.version() }

// Command is the command of one side.
type Command struct {
	Env  []string
	Args []string
}

// String returns the command as a line for a shell.
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

// WithoutOffloads returns the command that keeps the kernel from sending frames larger than the MTU.
func WithoutOffloads(ifname string) Command {
	return Command{Args: []string{Ethtool.Program, "-K", ifname, "tso", "off", "gso", "off", "gro", "off"}}
}

// Port is the port on which a server listens when it is ready.
type Port struct {
	Protocol string // tcp or udp
	Number   uint16
}

// Job is the request for one run of a test.
type Job struct {
	// Host is the server's address, and Interface the client's interface.
	Host, Interface string
	Duration        time.Duration
	// Count is the number of operations, for a tool that accepts no duration.
	Count int64
}

// seconds returns the duration for tools that accept only whole seconds.
func (j Job) seconds() int { return max(1, int(math.Ceil(j.Duration.Seconds()))) }

// Test is one measurement by a tool.
type Test struct {
	Tool *Tool
	// The text in What describes the test. The title of a test is the tool's name and this text.
	What string
	// Metric is result.Latency, Rate or Bandwidth. Size is the size of a message in bytes.
	Metric string
	Size   int64
	// Against is the corresponding operation of datbench: result.Send, Write or Read.
	Against string
	// Secure means that the peer encrypts. It is compared with the operation in secure mode.
	Secure bool
	// Mean means that a latency is the mean, because the tool reports no percentiles.
	Mean bool
	// Unfair is the reason why the figure must not be compared; empty if it may.
	Unfair string
	// FirstCount is the first Count for a tool that accepts no duration; 0 for other tools.
	FirstCount int64

	Server, Client func(Job) Command
	Port           Port
	// Parse fills in the client's figures: P50 and P99, or MsgsPerSec and Gbps. For a tool with a FirstCount it always
	// sets MsgsPerSec; in a latency test these are round trips per second.
	Parse func(out string, r *result.Result) error
}

// Title returns the test's name in the table.
func (t *Test) Title() string { return t.Tool.Title + " " + t.What }

// LastLine returns the last line that is not empty, for an error message.
func LastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func micros(v float64) *float64 { return &v }

// Tests returns all tests of a metric. self is the path of this program.
func Tests(self, metric string) []Test {
	return slices.Concat(UCXTests(metric), LibfabricTests(metric), SockperfTests(metric), Iperf3Tests(metric), GoTests(self, metric))
}

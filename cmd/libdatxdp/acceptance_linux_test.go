//go:build datprovider

package main_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

// This file runs the unmodified test programs of Debian's dapl2-utils with Debian's libdat2. The output of both sides
// decides whether a test passes.

var (
	dapltestBad  = regexp.MustCompile(`(?i)error|warn|mismatch|fail|can not continue`)
	exhaustedBad = regexp.MustCompile(`(?i)warn|mismatch|can not continue`) // the test ends when a resource is exhausted
	functionBad  = regexp.MustCompile(`failed in file|Error = |Result: FAIL`)
	callsBad     = regexp.MustCompile(`FAILED`)
	dtestBad     = regexp.MustCompile(`error|ERR:|FAILED|unexpected|invalid`)
)

// TestLimit creates objects of each kind, up to a large number.
func TestLimit(t *testing.T) {
	overEach(t, func(h *hosts) {
		h.run("dapltest -T L -D ia -w 2 -m 200", verdict{want: []string{"IAs opened: 200", "PZs created: 200",
			"CNOs created: 200", "EVDs created: 200", "EPs created: 200", "RSPs created: 200", "PSPs created: 200",
			"recv buffers posted per EP: 200"}, bad: dapltestBad})
		for _, kind := range []string{"ia", "pz", "cno", "evd", "ep", "rsp", "psp", "lmr"} {
			h.limit(kind, 1000)
		}
		h.limit("rpost", 200)
		h.run("dapltest -T L -D ia -d -w 16 -m 1000", verdict{want: []string{"IAs opened: 1000", "LMRs created: 1000",
			"total posted: 4096"}, bad: exhaustedBad})
		h.run("dapltest -T L -D ia limit_size_lmr", verdict{want: []string{"OK - stopping now"}, bad: dapltestBad})
	})
}

func (h *hosts) limit(kind string, n int) {
	h.t.Run(kind, func(t *testing.T) {
		p := h.in(t).start(lab.A, fmt.Sprintf("dapltest -T L -D ia -m %d limit_%s", n, kind))
		p.judge(verdict{want: []string{fmt.Sprintf(": %d\n", n)}, bad: dapltestBad})
	})
}

// run runs a program that does not need a peer.
func (h *hosts) run(line string, v verdict) {
	h.t.Run(line, func(t *testing.T) { h.in(t).start(lab.A, line).judge(v) })
}

// TestFunction runs the test cases of dapltest for single calls. It leaves out three cases of queryinfo. In cases 13
// and 15, a function of libdat2 gets the handle of an IA and uses it as a pointer, but the handle of an IA is only a
// small number. Case 5 fails with every provider.
func TestFunction(t *testing.T) {
	overEach(t, func(h *hosts) {
		for _, f := range []struct {
			feature string
			cases   int
		}{{"hwconn", 4}, {"endpoint", 3}, {"pz", 3}, {"mem", 5}, {"connmgt", 2},
			{"queryinfo case0 case1 case2 case3 case4 case6 case7 case8 case9 case10 case11 case12 case14 case16 case17", 15}} {
			line := "dapltest -T F -D ia -f " + f.feature
			t := h.t
			t.Run(f.feature, func(t *testing.T) {
				p := h.in(t).start(lab.A, line)
				out := p.wait()
				p.spotless(out, functionBad)
				if n := strings.Count(out, "Result: PASS"); n != f.cases {
					t.Errorf("%d of %d cases passed:\n%s", n, f.cases, out)
				}
			})
		}
	})
}

// maxSegments is the value of max_iov_segments_per_dto that dat_ia_query returns.
const maxSegments = 16

// transaction is a test of dapltest with a client and a server.
type transaction struct {
	args, want string
	secure     bool // with -short, the test runs in secure mode too
}

// The last lines of the outputs of dapltest's clients.
const (
	stats       = "----- Stats ----"
	performance = "raw:"
)

// transactions returns dapltest's transaction and performance tests, which transfer data with each operation.
func transactions() []transaction {
	all := []transaction{
		{"-T T client SR server SR", stats, false},
		{"-T P RW 4096 1", performance, false},
		{"-T P RR 4096 1", performance, false},
		{"-T T -d -i 100 client SR 4096 2 server SR 4096 2", stats, false},
		{"-T P -d -i 100 RW 4096 2", performance, false},
		{"-T T -i 100 client SR 4096 1 server SR 4096 1", stats, false},
		{"-T T -i 100 -V client SR 4096 2 server SR 4096 2", stats, true},
		{"-T T -i 100 -V client RW 4096 1 server RW 4096 1 client SR 256 1 server SR 256 1", stats, false},
		{"-T T -i 100 -V client RR 4096 1 server RR 4096 1 client SR 256 1 server SR 256 1", stats, false},
		{"-T T -i 50 -t 2 -w 4 -V client RW 4096 1 server RW 2048 4 client SR 1024 4 server SR 4096 2 client SR 1024 3 -f server SR 2048 1 -f", stats, true},
		{"-T T -i 50 -t 4 -w 8 client SR 1024 1 server SR 1024 1", stats, false},
		{"-T T -i 50 -P client SR 1024 1 server SR 1024 1", stats, false},
		{"-T T -i 50 -r client SR 1024 1 server SR 1024 1", stats, false},
		{"-T T -i 20 client SR 65536 4 server SR 1048576 1", stats, false},
		{"-T T -i 20 -t 8 -w 8 client SR 1024 1 server SR 1024 1", stats, false},
		{"-T T -i 10 -V -t 8 -w 8 client RW 4096 1 server RR 2048 2 client SR 256 1 server SR 256 1", stats, false},
		{"-T T -i 20 -V client SR 1048576 1 server SR 1048576 1", stats, false},
		{"-T T -i 4 -V client RW 1048576 2 server RR 1048576 2 client SR 256 1 server SR 256 1", stats, true},
		{"-T P -i 200 -p 16 RW 4096 1", performance, true},
		{"-T P -i 200 -p 16 -m p RW 4096 2", performance, false},
		{"-T P -i 200 -p 4 RR 4096 1", performance, false},
		{"-T P -i 200 -p 4 -m p RR 4096 1", performance, true},
	}
	for n := 1; n <= maxSegments; n++ {
		all = append(all, transaction{fmt.Sprintf("-T T -i 20 -V client SR 1024 %[1]d server RW 1024 %[1]d client RR 1024 %[1]d server SR 1024 %[1]d", n), stats, n == 3})
	}
	return all
}

// TestTransaction runs the transactions.
func TestTransaction(t *testing.T) {
	over(t, []string{"xdp", "udp", plainUDP}, func(h *hosts) { h.transact(transactions()) })
}

// transact runs transactions with one server, and ends the server.
func (h *hosts) transact(all []transaction) {
	server := h.start(lab.A, "dapltest -T S -D ia")
	served := 0 // less than len(all) if -run selects some of them
	for _, r := range all {
		h.t.Run(r.args, func(t *testing.T) {
			served++
			server.awaitText(t, "Service Point Ready", served)
			h.in(t).start(lab.B, h.client("dapltest "+r.args)).judge(verdict{want: []string{r.want, "End of Work"}, bad: dapltestBad})
		})
	}
	server.awaitText(h.t, "Service Point Ready", served+1)
	h.start(lab.B, h.client("dapltest -T Q")).judge(verdict{bad: dapltestBad})
	server.judge(verdict{want: []string{"Transaction Test Finished", "Finished performance test", "DT_cs_Server (ia):  Exiting."}, bad: dapltestBad})
}

// client inserts the server's address and the adapter into a dapltest command, after the kind of test.
func (h *hosts) client(line string) string {
	f := strings.SplitN(line, " ", 4)
	return strings.Join(append(f[:3:3], append([]string{"-s", lab.A.Addr4().String(), "-D", ia}, f[3:]...)...), " ")
}

// rendezvous is the TCP port on which the d-tests exchange addresses, over the same interface.
const rendezvous = 15828

// The last lines of the outputs of dtest and its variants.
const (
	passed    = "DAPL Test Complete. PASSED"
	connected = "DAPL Connection Test Complete."
)

// dtests are runs of dtest and its variants, with the same options on both sides.
var dtests = []struct {
	line, want string
	secure     bool // with -short, the test runs in secure mode too
}{
	{"dtest -P ia", passed, false},
	{"dtest -P ia -c", passed, false},
	{"dtestcm -P ia", connected, false},
	{"dtestsrq -P ia", "DAPL RC SRQ Test Complete.", false},
	{"dtest -P ia -b 70000 -B 20", passed, true},
	{"dtest -P ia -b 4096 -B 50", passed, false},
	{"dtest -P ia -b 4096 -B 50 -c", passed, true},
	{"dtest -P ia -b 4096 -B 50 -p", passed, false},
	{"dtest -P ia -b 4096 -B 50 -W -D", passed, false},
	{"dtest -P ia -b 4096 -B 50 -w -u", passed, true},
	{"dtestcm -P ia -c 100 -b 10", connected, true},
	{"dtestcm -P ia -c 100 -b 10 -w", connected, false},
	{"dtestcm -P ia -c 100 -b 10 -w -m", connected, false},
	{"dtestsrq -P ia -b 4096 -c 4 -B 10 -t 5", "DAPL RC SRQ Test Complete.", true},
	{"dtestsrq -P ia -b 4096 -c 4 -B 10 -t 5 -S 0", "DAPL RC none SRQ Test Complete.", false},
	{"dtestx -P ia", "IB extension test - immed/atomic test PASSED", false},
}

// TestDTest runs the dtests.
func TestDTest(t *testing.T) {
	over(t, []string{"xdp", "udp", plainUDP}, func(h *hosts) {
		for _, r := range dtests {
			h.t.Run(r.line, func(t *testing.T) { h.in(t).pair(fewerRounds(r.line), r.want) })
		}
		h.run("dtestx -P ia -q", verdict{want: []string{"Open_Query: ia num_attrs"}, bad: dtestBad})
	})
}

// With -short, fewerRounds reduces the number of rounds of a dtest command. It does not change a command that sets the
// number of rounds itself. Fewer rounds save much time: if both sides poll memory in a loop, one round takes several
// scheduling quanta.
func fewerRounds(line string) string {
	if testing.Short() && strings.HasPrefix(line, "dtest ") && !strings.Contains(line, "-B ") {
		line += " -B 50"
	}
	return line
}

// pair runs dtest or one of its variants on both sides.
func (h *hosts) pair(line, want string) {
	server := h.start(lab.A, line+serverFlag(line))
	awaitServer(server)
	client := h.start(lab.B, line+" -h "+lab.A.Addr4().String())
	v := verdict{want: []string{want}, bad: dtestBad}
	client.judge(v)
	server.judge(v)
}

// serverFlag makes dtest the server.
func serverFlag(line string) string {
	if strings.HasPrefix(line, "dtestx") {
		return ""
	}
	return " -s"
}

// awaitServer waits until the server accepts clients. It does not wait for a server of dtestsrq, because the clients of
// dtestsrq try again until the server listens.
func awaitServer(p *process) {
	if !strings.HasPrefix(p.line, "dtestsrq") {
		p.awaitListen(rendezvous)
	}
}

// TestDocumented runs each pair of server and client commands of docs/UDAPL.md. It replaces only the name and the
// address of the adapter.
func TestDocumented(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs the commands of the documents")
	}
	text, err := os.ReadFile("../../docs/UDAPL.md")
	must(t, err)
	_, run, _ := strings.Cut(string(text), "## Run")
	block := strings.Split(run, "```")
	var lines []string
	for line := range strings.Lines(strings.TrimPrefix(block[1], "sh\n")) {
		command, _, _ := strings.Cut(line, "#")
		command = strings.ReplaceAll(strings.TrimSpace(command), "xdp0", ia)
		lines = append(lines, strings.ReplaceAll(command, "10.0.0.1", lab.A.Addr4().String()))
	}
	if len(lines) != 4 {
		t.Fatalf("the commands are %q", lines)
	}
	overEach(t, func(h *hosts) {
		server := h.start(lab.A, lines[0])
		server.awaitText(h.t, "Service Point Ready", 1)
		h.start(lab.B, lines[1]).judge(verdict{want: []string{"----- Stats ----", "End of Work"}, bad: dapltestBad})
		h.start(lab.B, h.client("dapltest -T Q")).judge(verdict{bad: dapltestBad})
		server.judge(verdict{want: []string{"Transaction Test Finished"}, bad: dapltestBad})
		server = h.start(lab.A, lines[2])
		server.awaitListen(rendezvous)
		h.start(lab.B, lines[3]).judge(verdict{want: []string{passed}, bad: dtestBad})
		server.judge(verdict{want: []string{passed}, bad: dtestBad})
	})
}

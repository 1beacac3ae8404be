package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/ends"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/internal/result"
)

// served is a server in this process, with its log lines.
type served struct {
	*ends.DATTarget
	station plan.Station
	lines   chan string
}

// serveHere runs a server on a loopback address until the test ends.
func serveHere(t *testing.T, ia string, port uint16, most ends.Allowance) *served {
	t.Helper()
	addr, _, _ := strings.Cut(strings.TrimPrefix(ia, "udp:"), " ")
	s := &served{lines: make(chan string, 1000),
		station: plan.Station{Kind: plan.KindDAT, IA: "udp:127.0.0.22", Peer: netip.MustParseAddr(addr), Port: port}}
	var err error
	s.DATTarget, err = ends.OpenDAT(t.Context(), &workload.Host{}, plan.Station{Kind: plan.KindDAT, IA: ia, Port: port}, most, func(format string, args ...any) {
		s.lines <- fmt.Sprintf(format, args...)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// logged waits for a line of the server's log.
func (s *served) logged(t *testing.T, pattern string) {
	t.Helper()
	for timeout := time.After(limit); ; {
		select {
		case line := <-s.lines:
			if regexp.MustCompile(pattern).MatchString(line) {
				return
			}
			t.Logf("logged: %s", line)
		case <-timeout:
			t.Fatalf("no line %s", pattern)
		}
	}
}

// stranger is a client that is not datbench: a connection, and memory to send from.
type stranger struct {
	evd *dat.EVD
	ep  *dat.EP
	lmr *dat.LMR
}

// stranger starts a client that requests a row, makes its first connection and then does nothing. The client stays
// alive until the test ends. If the server refuses the client, the result refusal has the server's reason.
func (s *served) stranger(t *testing.T, row plan.Spec) (_ *stranger, refusal error) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	o := dat.DefaultOptions()
	o.Port = s.station.Port
	ia, err := dat.Open(s.station.IA, o)
	check(err)
	t.Cleanup(func() { _ = ia.Close() }) // closes all objects of the IA
	pz, err := ia.CreatePZ()
	check(err)
	evd, err := ia.CreateEVD(16, nil, dat.EVDDTO|dat.EVDConnection)
	check(err)
	ep, err := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
	check(err)
	check(ep.Connect(s.station.Peer, workload.QualifierOf(plan.Station{}), workload.ConnectTimeout, workload.Ask{Spec: row, Session: rand.Uint64(), Job: rand.Uint64()}.Encode()))
	var ev dat.Event
	_, err = evd.Wait(workload.ConnectTimeout, 1, &ev)
	check(err)
	if ev.Number != dat.EventEstablished {
		return nil, errors.New(string(ev.PrivateData))
	}
	lmr, err := ia.CreateLMR(make([]byte, 64), pz, dat.MemAll)
	check(err)
	return &stranger{evd, ep, lmr}, nil
}

// clientArgs returns the arguments of a client of this server that uses its own address.
func (s *served) clientArgs(from string, args ...string) []string {
	return append([]string{"run", s.station.Peer.String(), "--ia", "udp:" + from, "--port", strconv.Itoa(int(s.station.Port))}, args...)
}

// TestTaken: the server is reserved for a first client, which does nothing. The server refuses a second client at once,
// and the refusal names the first client. If the second client waits, the server serves it after the first client has
// lost the reservation.
func TestTaken(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "udp:127.0.0.21", 17671, ends.FullAllowance)
	row := plan.Spec{Row: result.Row{Op: result.Send, Metric: result.Bandwidth, Size: 1 << 20, Depth: 8}, Duration: plan.MaxDuration}
	if _, err := s.stranger(t, row); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got := datbench(t, s.clientArgs("127.0.0.23", "--duration", "20ms", "--warmup", "1ms", "--wait", "0s")...)
	want := regexp.MustCompile(`^datbench: 127\.0\.0\.21 is taken by 127\.0\.0\.22 since \d\d:\d\d:\d\d \(\d+s\): bandwidth send 1 MiB, after waiting for 0s: ` +
		`try again later, or wait longer as with --wait 1m$`)
	if got.code != exitUsage || !want.MatchString(got.lastLine()) || got.stdout != "" {
		t.Errorf("exit %d, %q\n%s", got.code, got.stdout, got.stderr)
	}
	if took := time.Since(began); took > workload.ConnectTimeout {
		t.Errorf("it was told after %s", took)
	}
	got = datbench(t, s.clientArgs("127.0.0.23", "--duration", "20ms", "--warmup", "1ms", "--wait", "1m", "--json", "-")...)
	if !strings.Contains(got.stderr, "more: 127.0.0.21 is taken by 127.0.0.22 since ") {
		t.Errorf("no progress of waiting in %s", got.stderr)
	}
	checkReport(t, got, []byte(got.stdout))
	s.logged(t, `^127\.0\.0\.22: bandwidth send 1 MiB: the client is alive but has sent nothing for \d+s: dropped$`)
}

// TestHalfWay: a client that makes only some of its row's connections loses the server, as early as with few connections.
func TestHalfWay(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "udp:127.0.0.21", 17673, ends.FullAllowance)
	row := plan.Spec{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, Depth: 8, Connections: plan.MaxConnections}, Duration: plan.MaxDuration}
	if _, err := s.stranger(t, row); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.logged(t, `^127\.0\.0\.22: message rate send 64 B × 128: connection 2 of 128 did not come$`)
	if took := time.Since(began); took > 2*plan.PeerTimeout {
		t.Errorf("it had the server for %s", took)
	}
}

// TestUnaskedMessages: a client sends messages while the server still fills its heap for the row and is not ready. The
// server ends this row. Other clients are not affected.
func TestUnaskedMessages(t *testing.T) {
	s := serveHere(t, "udp:127.0.0.21", 17679, ends.FullAllowance)
	row := plan.Spec{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, Depth: 8, Churn: int64(ends.DefaultAllowance.Heap)}, Duration: plan.MaxDuration}
	c, err := s.stranger(t, row)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 { // more messages than the server needs to notice them after it has filled its heap
		if err := c.ep.PostSend([]dat.LMRTriplet{c.lmr.Segment(0, 64)}, 0, dat.CompletionDefault); err != nil {
			t.Fatal(err)
		}
	}
	for ev := (dat.Event{}); ev.Number == 0 || ev.Number == dat.EventDTOCompletion; { // until the server ends it
		if _, err := c.evd.Wait(limit, 1, &ev); err != nil {
			t.Fatal(err)
		}
	}
	s.logged(t, `^127\.0\.0\.22: message rate send 64 B, .*: `+workload.ErrUnexpectedMessage.Error())
	got := datbench(t, s.clientArgs("127.0.0.23", "--duration", "20ms", "--warmup", "1ms", "--json", "-")...)
	checkReport(t, got, []byte(got.stdout))
}

// TestStrangersAsk: a request for a very large row costs the server only the memory that is used. A request that
// exceeds the server's allowance is refused, and the refusal names the limit.
func TestStrangersAsk(t *testing.T) {
	s := serveHere(t, "udp:127.0.0.21", 17675, ends.DefaultAllowance)
	before := resident(t)
	large := plan.Spec{Row: result.Row{Op: result.Write, Metric: result.Bandwidth, Size: plan.MaxSize, Depth: 13}, Duration: plan.MaxDuration}
	if _, err := s.stranger(t, large); err != nil {
		t.Fatal(err)
	}
	if grown := resident(t) - before; grown > 200<<20 {
		t.Errorf("an ask of 832 MiB takes %d MiB", grown>>20)
	}
	large.Churn = plan.ChurnSize
	const want = "--churn 1 GiB is more than the 64 MiB of this server: ask for less, or start it with --churn"
	if _, err := s.stranger(t, large); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// resident returns the resident memory of this process in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// holdings counts the resources of a process.
type holdings struct {
	goroutines, descriptors, connections int
	heap                                 int64
}

// holdings returns the resources of this process, in which the server runs.
func (s *served) holdings(t *testing.T) holdings {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	conns, err := s.Adapter.IA.Connections()
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC() // the first collection may keep objects with finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return holdings{runtime.NumGoroutine(), len(fds), len(conns), int64(m.HeapAlloc)}
}

// TestServerLeaks: the server serves many clients, and every third client is killed during its row. Afterwards the
// server holds the same resources as before.
func TestServerLeaks(t *testing.T) {
	s := serveHere(t, "udp:127.0.0.21 silence=500ms", 17677, ends.FullAllowance)
	clients := 120
	if testing.Short() {
		clients = 30
	}
	var before holdings
	for i := range clients + 3 {
		if i == 3 { // the first clients create resources that stay
			before = s.holdings(t)
		}
		args := []string{"--op", []string{result.Send, result.Write, result.Read}[i/3%3], "--metric", "bw", "--size", "64K", "--warmup", "1ms", "--wait", "1m"}
		if i%3 == 2 {
			// Each client has its own address, because an address whose row was interrupted must wait.
			s.killed(t, fmt.Sprintf("127.0.1.%d", i+1), append(args, "--duration", "10m", "--interval", "10ms"))
			continue
		}
		if got := datbench(t, s.clientArgs("127.0.0.23", append(args, "--duration", "10ms")...)...); got.code == exitUsage {
			t.Fatalf("client %d: %s", i, got.stderr)
		}
	}
	for deadline := time.Now().Add(cleanupLimit); ; time.Sleep(10 * time.Millisecond) { // closed connections stay for a while
		after := s.holdings(t)
		if after.goroutines <= before.goroutines && after.descriptors <= before.descriptors && after.connections <= before.connections &&
			after.heap < before.heap+1<<20 {
			t.Logf("before %+v, after %+v", before, after)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("before %+v, after %+v", before, after)
		}
	}
}

// killed runs a client and kills it during its row.
func (s *served) killed(t *testing.T, from string, args []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", s.clientArgs(from, args...)...)
	cmd.Env = append(os.Environ(), asProgram)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !regexp.MustCompile(`^ +0\.\d\d-\d`).MatchString(lines.Text()) {
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

// TestKilledClientXDP: if a client over AF_XDP is killed, the client's host tells the server that the client is gone.
// The server learns this before its own keep-alive probes time out, and then serves the next client.
func TestKilledClientXDP(t *testing.T) {
	t.Parallel()
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	server := inLab(t, l, lab.B, "server", "--ia", "xdp:veth0")
	server.awaitLine(t, "^serving on ")
	run := []string{"run", lab.B.Addr4().String(), "--ia", "xdp:veth0", "--op", "write", "--metric", "bw", "--size", "64K", "--warmup", "1ms"}
	client := inLab(t, l, lab.A, append(run, "--duration", "10m", "--interval", "20ms")...)
	client.awaitLine(t, `^ +0\.\d\d-\d`)
	if err := client.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	client.wait(t)
	next := inLab(t, l, lab.A, append(run, "--duration", "20ms")...)
	server.awaitLine(t, ": bandwidth write 64 KiB: the connection broke: ")
	if took := time.Since(killed); took > workload.KeepAlive+workload.Silence {
		t.Errorf("the server was told after %s, as if nobody had answered for the dead", took)
	}
	if got := next.wait(t); got.code == exitUsage {
		t.Errorf("the next client: exit %d\n%s", got.code, got.stderr)
	}
	endServer(t, server)
}

// Two servers of one adapter with different qualifiers measure with two clients at the same time. A qualifier is taken once.
func TestQualifiers(t *testing.T) {
	const port = 17671
	ia := "udp:127.0.0.23"
	serveHere(t, ia, port, ends.DefaultAllowance)
	station := plan.Station{Kind: plan.KindDAT, IA: ia, Port: port, Qualifier: 7}
	other, err := ends.OpenDAT(t.Context(), &workload.Host{}, station, ends.DefaultAllowance, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := ends.OpenDAT(t.Context(), &workload.Host{}, station, ends.DefaultAllowance, nil); !errors.Is(err, dat.ErrConnQualInUse) {
		t.Errorf("a third server with qualifier 7: %v", err)
	}
	first := start(t, "run", "127.0.0.23", "--ia", "udp:127.0.0.24", "--port", strconv.Itoa(port), "--metric", "lat,sha256", "--duration", "10m",
		"--interval", "20ms", "--wait", "0")
	first.awaitLine(t, `^ +0\.\d\d-\d`)
	got := datbench(t, "run", "127.0.0.23", "--ia", "udp:127.0.0.25", "--port", strconv.Itoa(port), "--metric", "sha256", "--bytes", "1M",
		"--qualifier", "7", "--wait", "0")
	if got.code != exitValid {
		t.Errorf("the client of the second server: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	none := datbench(t, "run", "127.0.0.23", "--ia", "udp:127.0.0.26", "--port", strconv.Itoa(port), "--qualifier", "8", "--wait", "0")
	if none.code != exitUsage || !strings.Contains(none.stderr, "no datbench listens there") {
		t.Errorf("a qualifier without a server: exit %d\n%s", none.code, none.stderr)
	}
	if err := first.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	first.wait(t)
}

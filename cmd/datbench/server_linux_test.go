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

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/internal/result"
)

// served is a server in this process, with the lines that it logs.
type served struct {
	*datTarget
	station station
	lines   chan string
}

// serveHere serves on an address of loopback until the test ends.
func serveHere(t *testing.T, ia string, port uint16, most allowance) *served {
	t.Helper()
	addr, _, _ := strings.Cut(strings.TrimPrefix(ia, "udp:"), " ")
	s := &served{lines: make(chan string, 1000),
		station: station{Kind: kindDAT, IA: "udp:127.0.0.22", Peer: netip.MustParseAddr(addr), Port: port}}
	var err error
	s.datTarget, err = openTarget(t.Context(), &host{}, station{Kind: kindDAT, IA: ia, Port: port}, most, func(format string, args ...any) {
		s.lines <- fmt.Sprintf(format, args...)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
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

// stranger is a client that asks for a row, says so much of it and then no more. It is alive until the test ends.
func (s *served) stranger(t *testing.T, row Spec) (*conn, error) {
	t.Helper()
	a, err := openAdapter(&host{}, s.station)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	c, err := newConn(t.Context(), a, row, shape{sources: 1, rdma: 1, messages: 1, requests: spare})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.free(); err != nil {
			t.Error(err)
		}
	})
	return c, c.connectOne(s.station, ask{row: row, remote: c.mem.remote(), session: rand.Uint64(), job: rand.Uint64()})
}

// clientArgs run against the server from an address of their own.
func (s *served) clientArgs(from string, args ...string) []string {
	return append([]string{"run", s.station.Peer.String(), "--ia", "udp:" + from, "--port", strconv.Itoa(int(s.station.Port))}, args...)
}

// TestTaken: who comes to a server that is taken is told so at once, and served when the client that had it, and did
// nothing, has lost it.
func TestTaken(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "udp:127.0.0.21", 17671, fullAllowance)
	row := Spec{Row: result.Row{Op: result.Send, Metric: result.Bandwidth, Size: 1 << 20, Depth: 8}, Duration: maxAskTime}
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
	if took := time.Since(began); took > connectTimeout {
		t.Errorf("it was told after %s", took)
	}
	got = datbench(t, s.clientArgs("127.0.0.23", "--duration", "20ms", "--warmup", "1ms", "--wait", "1m", "--json", "-")...)
	if !strings.Contains(got.stderr, "more: 127.0.0.21 is taken by 127.0.0.22 since ") {
		t.Errorf("no progress of waiting in %s", got.stderr)
	}
	checkReport(t, got, []byte(got.stdout))
	s.logged(t, `^127\.0\.0\.22: bandwidth send 1 MiB: the client is there and has sent nothing for 5s, it is dropped$`)
}

// TestHalfWay: a client that makes some of a row's connections, and no more, loses the server.
func TestHalfWay(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "udp:127.0.0.21", 17673, fullAllowance)
	row := Spec{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, Depth: 8, Connections: 3}, Duration: maxAskTime}
	if _, err := s.stranger(t, row); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.logged(t, `^127\.0\.0\.22: message rate send 64 B × 3: connection 2 of 3 did not come$`)
	if took := time.Since(began); took > 2*patience {
		t.Errorf("it had the server for %s", took)
	}
}

// TestUnaskedMessages: a client that sends messages where its row has none loses its row, and nobody else anything.
func TestUnaskedMessages(t *testing.T) {
	s := serveHere(t, "udp:127.0.0.21", 17679, fullAllowance)
	row := Spec{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, Depth: 8, Churn: serverHeap}, Duration: maxAskTime}
	c, err := s.stranger(t, row)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.until(func() bool { return c.up == 1 }); err != nil {
		t.Fatal(err)
	}
	for range 8 { // more than the server has noticed when its heap is filled
		if err := c.send(c.mem.piece(0, 64)); err != nil {
			t.Fatal(err)
		}
	}
	for {
		if _, err := c.poll(); err != nil {
			break // the server ended it
		}
	}
	s.logged(t, `^127\.0\.0\.22: message rate send 64 B, .*: `+errUnasked.Error())
	got := datbench(t, s.clientArgs("127.0.0.23", "--duration", "20ms", "--warmup", "1ms", "--json", "-")...)
	checkReport(t, got, []byte(got.stdout))
}

// TestStrangersAsk: the largest ask costs the server what is used of it, and what it does not give is refused by the name
// of the bound.
func TestStrangersAsk(t *testing.T) {
	s := serveHere(t, "udp:127.0.0.21", 17675, allowance{maxAskBytes, serverHeap})
	before := resident(t)
	large := Spec{Row: result.Row{Op: result.Write, Metric: result.Bandwidth, Size: maxAskSize, Depth: 13}, Duration: maxAskTime}
	if _, err := s.stranger(t, large); err != nil {
		t.Fatal(err)
	}
	if grown := resident(t) - before; grown > 200<<20 { // the stranger has a buffer of 64 MiB
		t.Errorf("an ask of 832 MiB takes %d MiB", grown>>20)
	}
	large.Churn = churnSize
	const want = "127.0.0.21 refused: --churn 1 GiB is more than the 64 MiB of this server: ask for less, or start it with --churn"
	if _, err := s.stranger(t, large); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestMemoryGoesBack: buffers that were used are the kernel's again when their row is over.
func TestMemoryGoesBack(t *testing.T) {
	a, err := openAdapter(&host{}, station{IA: "udp:127.0.0.25", Port: 17679})
	if err != nil {
		t.Fatal(err)
	}
	before := resident(t)
	m, err := newMemory(a, maxAskSize, 1, shape{sources: 4})
	if err != nil {
		t.Fatal(err)
	}
	unused := resident(t)
	for i := 0; i < len(m.bytes); i += cacheLine {
		m.bytes[i] = 1
	}
	used := resident(t)
	if err := errors.Join(m.free(), a.close()); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); unused-before > 32<<20 || used-before < 240<<20 || after-before > 32<<20 {
		t.Errorf("MiB resident beyond those before: unused %d, used %d, afterwards %d", (unused-before)>>20, (used-before)>>20, (after-before)>>20)
	}
}

// resident is the memory of this process in bytes.
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

// holdings is what a process has.
type holdings struct {
	goroutines, descriptors, connections int
	heap                                 int64
}

// holdings are those of this process, with the server in it.
func (s *served) holdings(t *testing.T) holdings {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	conns, err := s.a.ia.Connections()
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC() // the first may leave what has finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return holdings{runtime.NumGoroutine(), len(fds), len(conns), int64(m.HeapAlloc)}
}

// TestServerLeaks: a server has after many clients, of which every third was killed, what it had before.
func TestServerLeaks(t *testing.T) {
	s := serveHere(t, "udp:127.0.0.21 silence=500ms", 17677, fullAllowance)
	clients := 120
	if testing.Short() {
		clients = 30
	}
	var before holdings
	for i := range clients + 3 {
		if i == 3 { // the first have made what stays
			before = s.holdings(t)
		}
		args := []string{"--op", []string{result.Send, result.Write, result.Read}[i/3%3], "--metric", "bw", "--size", "64K", "--warmup", "1ms", "--wait", "1m"}
		if i%3 == 2 {
			s.killed(t, append(args, "--duration", "10m", "--interval", "10ms"))
			continue
		}
		if got := datbench(t, s.clientArgs("127.0.0.23", append(args, "--duration", "10ms")...)...); got.code == exitUsage {
			t.Fatalf("client %d: %s", i, got.stderr)
		}
	}
	for deadline := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) { // closed connections linger
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

// killed is a client that is killed in the middle of its row.
func (s *served) killed(t *testing.T, args []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", s.clientArgs("127.0.0.24", args...)...)
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

// TestKilledClientXDP: over AF_XDP too a server knows of a client's death by what its host answers, and serves the next.
func TestKilledClientXDP(t *testing.T) {
	t.Parallel()
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	server := inLab(t, l, lab.B, "server", "--ia", "xdp:veth0")
	server.awaitLine(t, "^serving on ")
	run := []string{"run", lab.B.Addr4().String(), "--ia", "xdp:veth0", "--op", "write", "--metric", "bw", "--warmup", "1ms"}
	client := inLab(t, l, lab.A, append(run, "--duration", "10m", "--interval", "20ms")...)
	client.awaitLine(t, `^ +0\.\d\d-\d`)
	if err := client.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	client.wait(t)
	next := inLab(t, l, lab.A, append(run, "--duration", "20ms")...)
	server.awaitLine(t, ": bandwidth write 1 MiB: the connection broke: ")
	if took := time.Since(killed); took > keepAlive+silence {
		t.Errorf("the server was told after %s, as if nobody had answered for the dead", took)
	}
	if got := next.wait(t); got.code == exitUsage {
		t.Errorf("the next client: exit %d\n%s", got.code, got.stderr)
	}
	endServer(t, server)
}

package examples

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/udplink"
)

// patience limits every wait. Nothing takes nearly as long.
const patience = 60 * time.Second

// network is an environment for the examples: its hosts, and how they open their adapters.
type network struct {
	name  string
	hosts []host
}

// host is one end of a network. start starts a command on it.
type host struct {
	ia, addr string
	start    func(*exec.Cmd) error
}

// loopback returns a network of four loopback addresses.
func loopback(net string) network {
	n := network{name: "udp"}
	for _, addr := range []string{net + ".1", net + ".2", net + ".3", net + ".4"} {
		n.hosts = append(n.hosts, host{"udp:" + addr, addr, (*exec.Cmd).Start})
	}
	return n
}

// build compiles the examples and returns their directory.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./...").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// process is a running example.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader
	rest   []byte
	stderr bytes.Buffer
}

func (h host) run(t *testing.T, stdin string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	p := &process{t: t, cmd: exec.CommandContext(ctx, args[0], append([]string{"--ia", h.ia}, args[1:]...)...)}
	p.cmd.Stdin, p.cmd.Stderr = strings.NewReader(stdin), &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := h.start(p.cmd); err != nil {
		t.Fatal(err)
	}
	return p
}

// ready waits for the line with which a server prints its address.
func (p *process) ready(addr string) *process {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil || !strings.Contains(line, " on "+addr) {
		_ = p.wait()
		p.t.Fatalf("%s printed %q and\n%s", p.cmd, line, &p.stderr)
	}
	return p
}

func (p *process) wait() error {
	p.rest, _ = io.ReadAll(p.out) // Wait returns the error
	return p.cmd.Wait()
}

// output waits until the process has ended successfully, and returns what it has printed.
func (p *process) output() string {
	p.t.Helper()
	if err := p.wait(); err != nil || p.stderr.Len() > 0 && !strings.Contains(p.stderr.String(), " % of ") {
		p.t.Errorf("%s: %v\n%s", p.cmd, err, &p.stderr)
	}
	return string(p.rest)
}

// interrupt sends ^C to a server, which must end successfully and print no error.
func (p *process) interrupt() string {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		p.t.Error(err)
	}
	return p.output()
}

// fails waits until the process has failed, and returns its error, which must be one line.
func (p *process) fails() string {
	p.t.Helper()
	if err := p.wait(); err == nil {
		p.t.Errorf("%s has not failed", p.cmd)
	}
	line := strings.TrimSuffix(p.stderr.String(), "\n")
	if line == "" || strings.Contains(line, "\n") {
		p.t.Errorf("%s: not one line: %q", p.cmd, line)
	}
	return line
}

func match(t *testing.T, got, want string) {
	t.Helper()
	if !regexp.MustCompile(`\A(?:` + want + `)\z`).MatchString(got) {
		t.Errorf("got %q, want %s", got, want)
	}
}

// TestExamples runs every example on every available network.
func TestExamples(t *testing.T) {
	bin := build(t)
	t.Run("nobody", func(t *testing.T) {
		t.Parallel() // clients wait for a long time
		n := loopback("127.78.0")
		match(t, n.hosts[1].run(t, "", bin+"/echo", "--to", n.hosts[0].addr).fails(), `echo: no connection to .*: is the server running there.*`)
	})
	for _, n := range append([]network{loopback("127.77.0")}, labs(t)...) {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			t.Run("echo", func(t *testing.T) { testEcho(t, n, bin+"/echo") })
			t.Run("reqresp", func(t *testing.T) { testReqresp(t, n, bin+"/reqresp") })
			t.Run("kv", func(t *testing.T) { testKV(t, n, bin+"/kv") })
			t.Run("table", func(t *testing.T) { testTable(t, n, bin+"/table") })
			t.Run("push", func(t *testing.T) { testPush(t, n, bin+"/push") })
		})
	}
}

func testEcho(t *testing.T, n network, echo string) {
	server, client := n.hosts[0], n.hosts[1]
	s := server.run(t, "", echo).ready(server.addr)
	for range 2 { // the server also serves a second client
		match(t, client.run(t, "one\n\nthree\n", echo, "--to", server.addr).output(),
			`one\t[\d.]+[µm]s\n\t[\d.]+[µm]s\nthree\t[\d.]+[µm]s\n`)
	}
	match(t, client.run(t, strings.Repeat("x", 5000), echo, "--to", server.addr).fails(), `echo: .*4095 bytes`)
	s.interrupt()
	match(t, client.run(t, "", echo, "--to", "there").fails(), `echo: --to there: give the IP address.*`)
}

func testReqresp(t *testing.T, n network, reqresp string) {
	server := n.hosts[0]
	s := server.run(t, "", reqresp).ready(server.addr)
	var clients []*process
	for _, h := range n.hosts[1:] {
		clients = append(clients, h.run(t, "", reqresp, "--to", server.addr, "--requests", "4000"))
	}
	for _, c := range clients {
		match(t, c.output(), `16000 requests in .*s: \d+ requests/s\n`)
	}
	s.interrupt()
}

func testKV(t *testing.T, n network, kv string) {
	server, client := n.hosts[0], n.hosts[1]
	s := server.run(t, "", kv).ready(server.addr)
	ask := func(args ...string) *process {
		return client.run(t, "", append([]string{kv, "--to", server.addr}, args...)...)
	}
	match(t, ask("put", "colour", "blue").output(), "\"stored\"\n")
	match(t, ask("put", "colour", "green").output(), "\"stored\"\n")
	match(t, ask("get", "colour").output(), "\"green\"\n")
	match(t, ask("get", "shape").fails(), "kv: no such key.*")
	match(t, ask("put", "long", strings.Repeat("x", 5000)).fails(), "kv: .*")
	match(t, ask().fails(), "kv: .*get KEY, or put KEY VALUE")
	s.interrupt()
}

func testTable(t *testing.T, n network, table string) {
	server, client := n.hosts[0], n.hosts[1]
	s := server.run(t, "", table).ready(server.addr)
	ask := func(args ...string) *process {
		return client.run(t, "", append([]string{table, "--to", server.addr}, args...)...)
	}
	match(t, ask("put", "colour", "blue").output(), "")
	match(t, ask("put", "colour", "green").output(), "")
	match(t, ask("get", "colour").output(), "green\n")
	match(t, ask("get", "shape").fails(), "table: no such key")
	match(t, ask("put", "long", strings.Repeat("x", 200)).fails(), "table: .* both may have 110")
	match(t, ask().fails(), "table: say what to do.*")
	s.interrupt()
}

func testPush(t *testing.T, n network, push string) {
	file := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("0123456789abcde\n"), 300_001) // 19 chunks; the last chunk is shorter
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var dirs, addrs []string
	var receivers []*process
	for _, h := range n.hosts[1:] {
		dirs, addrs = append(dirs, t.TempDir()), append(addrs, h.addr)
		receivers = append(receivers, h.run(t, "", push, "--dir", dirs[len(dirs)-1]).ready(h.addr))
	}
	send := func() *process {
		return n.hosts[0].run(t, "", append([]string{push, "--file", file}, addrs...)...)
	}
	for range 2 { // the second file replaces the first
		p := send()
		match(t, p.output(), `.*: \d of \d receivers have it, SHA-256 [0-9a-f]{64}\n`)
		match(t, p.stderr.String(), `(\d+ % of 4800016 bytes\n)*100 % of 4800016 bytes\n`)
	}
	for i, r := range receivers {
		match(t, r.interrupt(), `(.*/file: 19 chunks, SHA-256 [0-9a-f]{64}\n){2}`)
		got, err := os.ReadFile(dirs[i] + "/file")
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("receiver %d has %d bytes, %v", i, len(got), err)
		}
		if names, err := os.ReadDir(dirs[i]); err != nil || len(names) != 1 {
			t.Errorf("receiver %d has left %v, %v", i, names, err)
		}
	}
	testPushRefused(t, n, push, file)
}

// testPushRefused: a receiver that cannot store the file is dropped and named. The others get the file.
func testPushRefused(t *testing.T, n network, push, file string) {
	gone := filepath.Join(t.TempDir(), "gone")
	addrs := []string{push, "--file", file}
	var receivers []*process
	for i, h := range n.hosts[1:] {
		dir := gone
		if i > 0 {
			dir = t.TempDir()
		}
		receivers = append(receivers, h.run(t, "", push, "--dir", dir).ready(h.addr))
		addrs = append(addrs, h.addr)
	}
	p := n.hosts[0].run(t, "", addrs...)
	if err := p.wait(); err == nil {
		t.Error("a push that did not reach all has not failed")
	}
	if have := len(receivers) - 1; have > 0 {
		match(t, string(p.rest), fmt.Sprintf(`.*: %d of %d receivers have it, .*\n`, have, len(receivers)))
	}
	match(t, p.stderr.String(), `(?s).*push: `+n.hosts[1].addr+` does not have the file: it refuses: "open .*no such file or directory".*`)
	for i, r := range receivers {
		if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		if err := r.wait(); err != nil {
			t.Errorf("receiver %d: %v", i, err)
		}
	}
}

// deaf is a link that drops the answers to its connection requests. The server accepts them, but no connection is
// established.
type deaf struct{ link.Link }

func (d deaf) Recv(bufs []link.Buf) int {
	n := d.Link.Recv(bufs)
	const accept = 4 // the packet type is the lower half of the first byte
	heard := bufs[:0]
	for i := range n {
		if bufs[i].Data[0]&15 == accept {
			d.Free(bufs[i : i+1])
		} else {
			heard = append(heard, bufs[i])
		}
	}
	return len(heard)
}

// TestClientsThatDoNotConfirm: clients on four hosts request more places than the server has, and never complete the
// connection. A client on another host nevertheless gets a place.
func TestClientsThatDoNotConfirm(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for i, tt := range []struct {
		name string
		qual dat.ConnQual
		args []string
	}{
		{"echo", 7, nil},
		{"reqresp", 7008, []string{"--clients", "1", "--requests", "1"}},
		{"kv", 7009, []string{"put", "colour", "blue"}},
		{"table", 9, []string{"put", "colour", "blue"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := loopback(fmt.Sprintf("127.83.%d", i))
			server := n.hosts[0].run(t, "", filepath.Join(bin, tt.name)).ready(n.hosts[0].addr)
			for host := range 4 {
				asksInVain(t, netip.AddrFrom4([4]byte{127, 83, byte(i), byte(10 + host)}), netip.MustParseAddr(n.hosts[0].addr), tt.qual)
			}
			for range 3 {
				args := append([]string{filepath.Join(bin, tt.name), "--to", n.hosts[0].addr}, tt.args...)
				n.hosts[1].run(t, "hello\n", args...).output()
			}
			match(t, server.interrupt(), "")
		})
	}
}

// asksInVain repeatedly requests 64 connections to a service, and completes none of them.
func asksInVain(t *testing.T, from, to netip.Addr, qual dat.ConnQual) {
	t.Helper()
	l, err := udplink.Open(from, udplink.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ia, err := dat.OpenLink(dat.DefaultOptions(), deaf{l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ia.Close() })
	pz, err1 := ia.CreatePZ()
	evd, err2 := ia.CreateEVD(64, nil, dat.EVDConnection)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for range 64 {
		ep, err := ia.CreateEP(pz, dat.EPConfig{ConnectEVD: evd})
		if err == nil {
			err = ep.Connect(to, qual, -1, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

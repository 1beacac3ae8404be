package examples

import (
	"bytes"
	"errors"
	"fmt"
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
	"github.com/datxdp/datxdp/internal/lab/labtest"
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

// run starts an example on the host.
func (h host) run(t *testing.T, stdin string, args ...string) *labtest.Process {
	t.Helper()
	p := labtest.NewProcess(t, patience, args[0], append([]string{"--ia", h.ia}, args[1:]...)...)
	p.Cmd.Stdin = strings.NewReader(stdin)
	return p.Start(h.start)
}

// asks returns a function that starts a client of server on the host, with arguments.
func (h host) asks(t *testing.T, example string, server host) func(args ...string) *labtest.Process {
	return func(args ...string) *labtest.Process {
		t.Helper()
		return h.run(t, "", append([]string{example, "--to", server.addr}, args...)...)
	}
}

// serve starts a server on the host, and waits for the line with its address.
func (h host) serve(t *testing.T, args ...string) *labtest.Process {
	t.Helper()
	return h.run(t, "", args...).Await(" on " + regexp.QuoteMeta(h.addr))
}

// TestExamples runs every example on every available network.
func TestExamples(t *testing.T) {
	bin := build(t)
	t.Run("nobody", func(t *testing.T) {
		t.Parallel() // clients wait for a long time
		n := loopback("127.78.0")
		labtest.Match(t, n.hosts[1].run(t, "", bin+"/echo", "--to", n.hosts[0].addr).Fails(), `echo: no connection to .*: dat: DAT_CONNECTION_EVENT_.*: is the server running there.*`)
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
	s := server.serve(t, echo)
	for range 2 { // the server also serves a second client
		labtest.Match(t, client.run(t, "one\n\nthree\n", echo, "--to", server.addr).Output(),
			`one\t[\d.]+[µm]s\n\t[\d.]+[µm]s\nthree\t[\d.]+[µm]s\n`)
	}
	labtest.Match(t, client.run(t, strings.Repeat("x", 5000), echo, "--to", server.addr).Fails(), `echo: .*4095 bytes`)
	s.Interrupt()
	labtest.Match(t, client.run(t, "", echo, "--to", "there").Fails(), `echo: --to there: give the IP address.*`)
}

func testReqresp(t *testing.T, n network, reqresp string) {
	server := n.hosts[0]
	s := server.serve(t, reqresp)
	var clients []*labtest.Process
	for _, h := range n.hosts[1:] {
		clients = append(clients, h.run(t, "", reqresp, "--to", server.addr, "--requests", "4000"))
	}
	for _, c := range clients {
		labtest.Match(t, c.Output(), `16000 requests in .*s: \d+ requests/s\n`)
	}
	s.Interrupt()
}

func testKV(t *testing.T, n network, kv string) {
	server, client := n.hosts[0], n.hosts[1]
	s := server.serve(t, kv)
	ask := client.asks(t, kv, server)
	labtest.Match(t, ask("put", "colour", "blue").Output(), "\"stored\"\n")
	labtest.Match(t, ask("put", "colour", "green").Output(), "\"stored\"\n")
	labtest.Match(t, ask("get", "colour").Output(), "\"green\"\n")
	labtest.Match(t, ask("get", "shape").Fails(), "kv: no such key.*")
	labtest.Match(t, ask("put", "long", strings.Repeat("x", 5000)).Fails(), "kv: .*")
	labtest.Match(t, ask().Fails(), "kv: .*get KEY, or put KEY VALUE")
	s.Interrupt()
}

func testTable(t *testing.T, n network, table string) {
	server, client := n.hosts[0], n.hosts[1]
	s := server.serve(t, table)
	ask := client.asks(t, table, server)
	labtest.Match(t, ask("put", "colour", "blue").Output(), "")
	labtest.Match(t, ask("put", "colour", "green").Output(), "")
	labtest.Match(t, ask("get", "colour").Output(), "green\n")
	labtest.Match(t, ask("get", "shape").Fails(), "table: no such key")
	labtest.Match(t, ask("put", "long", strings.Repeat("x", 200)).Fails(), "table: .* both may have 110")
	labtest.Match(t, ask().Fails(), "table: say what to do.*")
	s.Interrupt()
}

func testPush(t *testing.T, n network, push string) {
	file := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("0123456789abcde\n"), 300_001) // 19 chunks; the last chunk is shorter
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var dirs, addrs []string
	var receivers []*labtest.Process
	for _, h := range n.hosts[1:] {
		dirs, addrs = append(dirs, t.TempDir()), append(addrs, h.addr)
		receivers = append(receivers, h.serve(t, push, "--dir", dirs[len(dirs)-1]))
	}
	send := func() *labtest.Process {
		return n.hosts[0].run(t, "", append([]string{push, "--file", file}, addrs...)...)
	}
	for range 2 { // the second file replaces the first
		out, progress, err := send().Wait()
		if err != nil {
			t.Error(err)
		}
		labtest.Match(t, out, `.*: \d of \d receivers have it, SHA-256 [0-9a-f]{64}\n`)
		labtest.Match(t, progress, `(\d+ % of 4800016 bytes\n)*100 % of 4800016 bytes\n`)
	}
	for i, r := range receivers {
		labtest.Match(t, r.Interrupt(), `(.*/file: 19 chunks, SHA-256 [0-9a-f]{64}\n){2}`)
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
	var receivers []*labtest.Process
	for i, h := range n.hosts[1:] {
		dir := gone
		if i > 0 {
			dir = t.TempDir()
		}
		receivers = append(receivers, h.serve(t, push, "--dir", dir))
		addrs = append(addrs, h.addr)
	}
	out, message, err := n.hosts[0].run(t, "", addrs...).Wait()
	if err == nil {
		t.Error("a push that did not reach all has not failed")
	}
	if have := len(receivers) - 1; have > 0 {
		labtest.Match(t, out, fmt.Sprintf(`.*: %d of %d receivers have it, .*\n`, have, len(receivers)))
	}
	labtest.Match(t, message, `(?s).*push: `+n.hosts[1].addr+` does not have the file: it refuses: "open .*no such file or directory".*`)
	for i, r := range receivers {
		if err := r.Cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		if _, _, err := r.Wait(); err != nil {
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
			server := n.hosts[0].serve(t, filepath.Join(bin, tt.name))
			for host := range 4 {
				asksInVain(t, netip.AddrFrom4([4]byte{127, 83, byte(i), byte(10 + host)}), netip.MustParseAddr(n.hosts[0].addr), tt.qual)
			}
			for range 3 {
				args := append([]string{filepath.Join(bin, tt.name), "--to", n.hosts[0].addr}, tt.args...)
				n.hosts[1].run(t, "hello\n", args...).Output()
			}
			labtest.Match(t, server.Interrupt(), "")
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

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestScript runs bench/peers.sh, shortened. Every row of an installed tool must have a figure.
func TestScript(t *testing.T) {
	labtest.RequireXDP(t)
	dir := t.TempDir()
	cmd := exec.Command("../peers.sh", "--duration", "100ms", "--repeat", "1", "--limit", "45s",
		"--json", dir+"/t.json", "--markdown", dir+"/t.md")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exitValid && code != exitInvalid {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	report := readReport(t, dir+"/t.json")
	missing := map[string]string{}
	for _, tl := range append(tool.Peers(), tool.Ethtool) {
		missing[tl.Title] = tl.Missing()
	}
	if want := len(plan(defaultConfig(), "")); len(report.Rows) != want {
		t.Errorf("got %d rows, want %d", len(report.Rows), want)
	}
	for i, row := range report.Rows {
		checkRow(t, i+1, row, missing)
	}
	markdown, err := os.ReadFile(dir + "/t.md")
	if err != nil || !bytes.Contains(markdown, []byte("| theirs |")) || !strings.Contains(stdout.String(), "theirs") {
		t.Errorf("no table in %s, %v, or in\n%s", markdown, err, &stdout)
	}
	for title, why := range missing {
		if why != "" {
			t.Run(title, func(t *testing.T) { t.Skip(why) })
		}
	}
}

// checkRow checks that a row has a figure and its commands, or names the program to install. A host that is too busy
// for a valid figure of datbench does not fail the test.
func checkRow(t *testing.T, number int, row Row, missing map[string]string) {
	t.Helper()
	why := ""
	for title, m := range missing {
		if strings.HasPrefix(row.Peer, title+" ") {
			why = m
		}
	}
	if !row.Offloads {
		why = cmp.Or(missing[tool.Ethtool.Title], why)
	}
	if why != "" {
		if row.Reason != why || row.Valid {
			t.Errorf("%d %s: got %q, want %q", number, row.Peer, row.Reason, why)
		}
		return
	}
	if row.Figure <= 0 || len(row.Runs) == 0 || row.Server == "" || row.Client == "" {
		t.Errorf("%d %s: %s: %+v", number, row.Peer, row.Reason, row)
	}
}

func readReport(t *testing.T, file string) *Report {
	t.Helper()
	text, err := os.ReadFile(file)
	r := &Report{}
	if err := errors.Join(err, json.Unmarshal(text, r)); err != nil {
		t.Fatal(err)
	}
	return r
}

// tools creates the only directory of PATH, with the programs that a shell needs and with fakes.
func tools(t *testing.T, fakes map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"sh", "unshare", "mount", "sleep", "echo"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range fakes {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// fakeDatbench serves nothing, and prints a figure for every requested row. It refuses keys that do not exist.
const fakeDatbench = `
for word; do
	case $last in --key|--peers) [ -s "$word" ] || { echo "no $word" >&2; exit 2; } ;; esac
	last=$word
done
[ "$1" = server ] && { echo "serving on it"; exec sleep 1000; }
echo '{"env":{"kernel":"6"},"results":[
{"op":"send","metric":"lat","p50_us":5,"p99_us":9,"valid":true},
{"op":"write","metric":"lat","p50_us":5,"p99_us":9,"valid":false,"reason":"it slept"},
{"op":"send","metric":"bw","gbps":5,"valid":true}]}'
exit 1
`

// TestFailures: a peer that hangs, fails, prints nonsense, dies or is not installed has no figures. Its rows have the
// reason, and other rows are not affected.
func TestFailures(t *testing.T) {
	labtest.RequireRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	serve := func(port string) string { return "exec " + self + " serve net 10.73.0.1:" + port + "\n" }
	dir := tools(t, map[string]string{
		"datbench":     fakeDatbench,
		"ucx_perftest": "[ $# -eq 0 ] && " + serve("13337") + "[ $3 = tag_lat ] && exec sleep 1000\necho something else\n",
		"sockperf":     "[ $1 = server ] && { echo cannot bind >&2; exit 3; }\n",
		"iperf3":       "[ $1 = -s ] && " + serve("5201") + "echo '{\"error\": \"the server is busy\"}'; exit 1\n",
	})
	file := t.TempDir() + "/t.json"
	cmd := program(t, "--duration", "20ms", "--repeat", "1", "--limit", "2s", "--metric", "lat,bw",
		"--datbench", dir+"/datbench", "--json", file)
	cmd.Env = append(cmd.Env, "PATH="+dir)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitInvalid {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, tt := range []struct {
		metric, peer, reason string
		mtu                  int
	}{
		{"lat", "datxdp send", "", 1500},
		{"lat", "datxdp write", "it slept", 1500},
		{"lat", "datxdp read", "datbench run has no lat of read", 1500},
		{"lat", "datxdp send+aes", "", 1500},
		{"lat", "UCX tag over tcp, polling", "the client did not end within 2s", 1500},
		{"lat", "UCX put over tcp, polling", `no figures in "something else"`, 1500},
		{"lat", "libfabric tcp, polling", "fi_pingpong is not installed: apt-get install libfabric-bin", 1500},
		{"lat", "sockperf TCP, blocking", "the server ended before it served: cannot bind", 1500},
		{"lat", "Go net TCP", "", 1500},
		{"bw", "iperf3 TCP", "the client exit status 1: the server is busy", 1500},
		{"bw", "Go net TCP", "", 65000},
		{"bw", "Go net TCP", "ethtool is not installed: apt-get install ethtool", 9000},
	} {
		checkFailure(t, readReport(t, file), tt.metric, tt.peer, tt.mtu, tt.reason)
	}
}

func checkFailure(t *testing.T, r *Report, metric, peer string, mtu int, reason string) {
	t.Helper()
	for _, row := range r.Rows {
		if row.Metric != metric || row.Peer != peer || row.MTU != mtu {
			continue
		}
		if reason == "" && strings.HasPrefix(row.Reason, "the host is busy") {
			return // other tests run at the same time
		}
		if row.Reason != reason || row.Valid != (reason == "") || row.Valid != (row.Figure > 0 && row.Peer != "datxdp write") {
			t.Errorf("%s %s at %d: got %g, valid %v, %q, want %q", metric, peer, mtu, row.Figure, row.Valid, row.Reason, reason)
		}
		return
	}
	t.Errorf("no row %s %s at %d", metric, peer, mtu)
}

// TestBusy: a figure is invalid if another program used a core, and the reason says so.
func TestBusy(t *testing.T) {
	labtest.RequireRoot(t)
	dir := tools(t, map[string]string{"datbench": fakeDatbench})
	file := t.TempDir() + "/t.json"
	cmd := program(t, "--duration", "300ms", "--repeat", "1", "--peer", "net", "--metric", "lat", "--datbench", dir+"/datbench", "--json", file)
	before := userTime()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	go func() {
		_ = cmd.Wait() // ends with status 1
		ended.Store(true)
	}()
	for !ended.Load() { // this goroutine is the other program
	}
	if took := userTime() - before; took < 300*time.Millisecond {
		t.Errorf("%s of user time went by", took)
	}
	for _, row := range readReport(t, file).Rows {
		if row.Peer == "Go net TCP" && (row.Valid || row.Ratio != nil || row.Figure <= 0 || !strings.HasPrefix(row.Reason, "the host is busy with something else")) {
			t.Errorf("got %+v", row)
		}
	}
}

// TestNotRoot: without privilege the program fails at once.
func TestNotRoot(t *testing.T) {
	cmd := program(t)
	if os.Geteuid() == 0 {
		const nobody = 65534
		exe, err := os.Open("/proc/self/exe") // the user may have no access to its directory
		if err != nil {
			t.Fatal(err)
		}
		defer exe.Close()
		cmd.ExtraFiles, cmd.Path, cmd.Dir = []*os.File{exe}, "/proc/self/fd/3", "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, _ := cmd.CombinedOutput()
	if got, want := string(out), "peers: needs root, for network namespaces and AF_XDP\n"; got != want || cmd.ProcessState.ExitCode() != exitUsage {
		t.Errorf("got exit %d, %q, want %d, %q", cmd.ProcessState.ExitCode(), got, exitUsage, want)
	}
}

// TestListens: listens returns true only when the server listens.
func TestListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := tool.Port{Protocol: "tcp", Number: uint16(l.Addr().(*net.TCPAddr).Port)}
	if !listens(os.Getpid(), p) {
		t.Errorf("nobody listens at %v", p)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	q := tool.Port{Protocol: "udp", Number: uint16(u.LocalAddr().(*net.UDPAddr).Port)}
	if listens(os.Getpid(), p) || !listens(os.Getpid(), q) || listens(1<<30, q) {
		t.Error(fmt.Sprint("after closing it: ", p, q))
	}
}

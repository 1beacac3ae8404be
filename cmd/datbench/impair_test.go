package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/result"
	"github.com/datxdp/datxdp/internal/tap"
)

func TestImpairment(t *testing.T) {
	var i impairment
	if got := i.passes(); len(got) != 1 || got[0] != "" {
		t.Errorf("none: got passes %q", got)
	}
	if err := i.Set("loss=1%,dup=0.5,seed=7"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "loss=0.01,dup=0.5,seed=7"}, i.passes()); diff != "" {
		t.Errorf("passes (-want +got):\n%s", diff)
	}
	if err := i.Set("loss=1%"); err != nil || i.Seed < 1 || i.Seed > maxSeed {
		t.Errorf("seed %d, %v: want one that was drawn", i.Seed, err)
	}
	again, err := tap.Parse(i.text())
	if err != nil || again != i.Rates {
		t.Errorf("%q is read as %+v, %v", i.text(), again, err)
	}
	if err := i.Set(""); err != nil || i.text() != "" {
		t.Errorf("got %q, %v, want none", i.text(), err)
	}
}

// TestImpairedRows: each row as the link is and impaired, and TCP only where packets are lost.
func TestImpairedRows(t *testing.T) {
	dat := []string{"bw write 1500", "lat send 1500", "bw write 1500 impaired", "lat send 1500 impaired"}
	tcp := []string{"bw tcp 1500 plain", "lat tcp 1500 plain", "bw tcp 1500 impaired plain", "lat tcp 1500 impaired plain"}
	for rates, want := range map[string][]string{"loss=1%": append(dat[:4:4], tcp...), "corrupt=1%": append(dat[:4:4], tcp...), "dup=1%": dat} {
		cfg := defaultConfig()
		if err := cfg.impair.Set(rates); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ph := range mainLabs(&cfg.options, link{transport: transportXDP, mtu: 1500})[0] {
			for _, r := range ph.rows {
				name := r.Metric + " " + r.Op + " " + itoa(r.MTU)
				if r.Impair != "" {
					name += " impaired"
				}
				if ph.plain {
					name += " plain"
				}
				if r.Impair != ph.target.Impair || r.Impair != ph.initiator.Impair {
					t.Errorf("%s: %q at the target, %q at the initiator", name, ph.target.Impair, ph.initiator.Impair)
				}
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rates, diff)
		}
	}
}

// impairedResults are a run at 1 % loss, as widely printed as can be.
func impairedResults() []result.Result {
	const impair = "loss=0.01,dup=0.001,seed=999999"
	lat := result.Result{Row: result.Row{Metric: result.Latency, Size: 1024, MTU: 1500}, P50: ptr(9), P99: ptr(30), P999: ptr(99999), Samples: 9, Mode: "zero-copy", Valid: true}
	bw := result.Result{Row: result.Row{Metric: result.Bandwidth, Size: 1 << 20, MTU: 1500}, Gbps: 4, Samples: 9, Mode: "zero-copy", Valid: true}
	of := func(r result.Result, op, impair string, figure float64) result.Result {
		r.Op, r.Impair = op, impair
		if r.Metric == result.Latency {
			r.P99 = ptr(figure)
		} else {
			r.Gbps = figure
		}
		return r
	}
	broken := of(bw, result.Read, impair, 1)
	broken.Invalidate("starved")
	return []result.Result{
		of(lat, result.Send, "", 30), of(lat, result.Send, impair, 45), of(lat, result.TCP, "", 40), of(lat, result.TCP, impair, 240000),
		of(bw, result.Write, "", 4), of(bw, result.Write, impair, 3.2), of(bw, result.Read, "", 3), broken, of(bw, result.TCP, impair, 1),
	}
}

func TestCompare(t *testing.T) {
	results := impairedResults()
	result.CompareImpaired(results)
	var got []string
	for _, r := range results {
		s := r.Metric + " " + r.Op
		if r.Kept != nil {
			s += " kept " + strconv.FormatFloat(*r.Kept, 'f', 1, 64)
		}
		if r.P99Ratio != nil {
			s += " p99 " + strconv.FormatFloat(*r.P99Ratio, 'f', 1, 64)
		}
		got = append(got, s)
	}
	want := []string{"lat send", "lat send p99 1.5", "lat tcp", "lat tcp p99 6000.0",
		"bw write", "bw write kept 80.0", "bw read", "bw read", "bw tcp"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestImpairedTable(t *testing.T) {
	results := impairedResults()
	result.CompareImpaired(results)
	var b bytes.Buffer
	renderTable(&b, &result.Report{Env: result.Env{Link: "veth", Pcap: "x.pcapng"}, Results: results})
	for _, want := range []string{"round trip at MTU 1500\n", "round trip at MTU 1500, impaired by loss=0.01,dup=0.001,seed=999999\n",
		"kept", "80.0%", "× p99", "6000", "1.50", "TCP runs without TSO", "Captured to x.pcapng"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestFew: kernel TCP may have few samples where packets are lost, and says nothing of its p99.9 then.
func TestFew(t *testing.T) {
	for _, tt := range []struct {
		r     result.Result
		valid bool
	}{
		{result.Result{Row: result.Row{Op: result.TCP, Impair: "loss=0.01"}, Samples: 200}, true},
		{result.Result{Row: result.Row{Op: result.TCP, Impair: "loss=0.01"}, Samples: 99}, true},
		{result.Result{Row: result.Row{Op: result.TCP, Impair: "loss=0.01"}, Samples: 9}, false},
		{result.Result{Row: result.Row{Op: result.TCP}, Samples: 200}, false},
		{result.Result{Row: result.Row{Op: result.Send, Impair: "loss=0.01"}, Samples: 200}, false},
	} {
		r := tt.r
		r.Metric, r.Valid, r.P99, r.P999 = result.Latency, true, ptr(1), ptr(1)
		judge(&r, evidence{})
		if r.Valid != tt.valid || tt.valid && (r.P999 != nil || (r.P99 != nil) != (r.Samples >= 100)) {
			t.Errorf("%+v: got valid %t (%s)", tt.r, r.Valid, r.Reason)
		}
	}
}

// TestImpairedUDP is the main job with an impairment, without root: packets are lost, and resent.
func TestImpairedUDP(t *testing.T) {
	got := datbench(t, "--transport", "udp", "--impair", "loss=2%,seed=5", "--duration", "100ms", "--warmup", "20ms",
		"--port", "17651", "--json", "-")
	checkImpaired(t, checkReport(t, got, []byte(got.stdout)), "loss=0.02,seed=5")
}

// TestCaptureUDP: what the main job captures can be read, and the report says that it did.
func TestCaptureUDP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "udp.pcapng")
	got := datbench(t, "--transport", "udp", "--pcap", file, "--op", "send", "--metric", "lat", "--duration", "50ms", "--warmup", "10ms",
		"--port", "17653", "--json", "-")
	if r := checkReport(t, got, []byte(got.stdout)); r.Env.Pcap != file {
		t.Errorf("captured to %q, want %q", r.Env.Pcap, file)
	}
	checkCapture(t, file, "127.0.0.2", "127.0.0.1")
}

// checkImpaired: half of the rows are impaired, lose packets, and are compared with the others where both have the figure.
func checkImpaired(t *testing.T, r result.Report, impair string) {
	t.Helper()
	impaired := 0
	for _, res := range r.Results {
		if res.Impair == "" {
			continue
		}
		impaired++
		name := res.Metric + " " + res.Op
		if res.Impair != impair {
			t.Errorf("%s: impaired by %q, want %q", name, res.Impair, impair)
		}
		if res.Op != result.TCP && res.Valid && (res.Drops == 0 || res.Retransmits == 0) {
			t.Errorf("%s: %d dropped, %d resent", name, res.Drops, res.Retransmits)
		}
		base := result.Unimpaired(r.Results, &res)
		if base == nil {
			t.Errorf("%s: no row to compare it with", name)
			continue
		}
		comparable := res.Metric != result.Latency || res.P99 != nil && base.P99 != nil // kernel TCP may have too few samples for a p99
		if comparable && res.Valid && base.Valid && res.Kept == nil && res.P99Ratio == nil {
			t.Errorf("%s: not compared", name)
		}
	}
	if impaired == 0 || 2*impaired != len(r.Results) {
		t.Errorf("%d of %d rows are impaired", impaired, len(r.Results))
	}
}

// checkCapture has capinfos and tshark read a capture, where they are installed: it is whole, and has
// packets of both directions.
func checkCapture(t *testing.T, file string, addrs ...string) {
	t.Helper()
	if info, err := os.Stat(file); err != nil || info.Size() < 1000 {
		t.Fatalf("no capture: %v, %v", info, err)
	}
	tool := func(name string, args ...string) string {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("no %s: the capture is not opened with it", name)
		}
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = append(os.Environ(), "WIRESHARK_CONFIG_DIR="+t.TempDir(), "LC_ALL=C")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	if infos := tool("capinfos", file); !strings.Contains(infos, "pcapng") || !strings.Contains(infos, "Ethernet") {
		t.Errorf("capinfos says\n%s", infos)
	}
	seen := tool("tshark", "-n", "-r", file, "-c", "50", "-T", "fields", "-e", "ip.src", "-e", "udp.length")
	for _, addr := range addrs {
		if !strings.Contains(seen, addr+"\t") {
			t.Errorf("no packet from %s in\n%s", addr, seen)
		}
	}
}

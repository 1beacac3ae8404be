package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/result"
)

// TestImpairedUDP runs the main job with an impairment, without root. Packets are lost and retransmitted.
func TestImpairedUDP(t *testing.T) {
	got := datbench(t, "--transport", "udp", "--impair", "loss=2%,seed=5", "--duration", "100ms", "--warmup", "20ms",
		"--port", "17651", "--json", "-")
	checkImpaired(t, checkReport(t, got, []byte(got.stdout)), "loss=0.02,seed=5")
}

// TestCaptureUDP: the main job's capture can be read, and the report names the file.
func TestCaptureUDP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "udp.pcapng")
	got := datbench(t, "--transport", "udp", "--pcap", file, "--op", "send", "--metric", "lat", "--duration", "50ms", "--warmup", "10ms",
		"--port", "17653", "--json", "-")
	if r := checkReport(t, got, []byte(got.stdout)); r.Env.Pcap != file {
		t.Errorf("captured to %q, want %q", r.Env.Pcap, file)
	}
	checkCapture(t, file, "127.0.0.2", "127.0.0.1")
}

// checkImpaired checks that half of the rows of an impaired job are impaired, and that each impaired DAT row loses
// packets. The report must compare each impaired row with the same row without impairment. The exception is a kernel
// TCP row with too few samples for a p99.
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

// checkCapture opens a capture file with capinfos and tshark, if they are installed. The file must be complete and
// contain packets of both directions.
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

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestImpairedXDP runs the main job with every impairment at once.
func TestImpairedXDP(t *testing.T) {
	labtest.RequireXDP(t)
	const impair = "loss=0.01,dup=0.01,reorder=0.01,corrupt=0.001,seed=5"
	got := datbench(t, "--transport", "xdp", "--impair", impair, "--duration", "400ms", "--warmup", "20ms", "--json", "-")
	r := checkReport(t, got, []byte(got.stdout))
	if len(r.Results) != 8 {
		t.Errorf("got %d rows, want 8", len(r.Results))
	}
	checkImpaired(t, r, impair)
}

// TestCaptureXDP: the main job's capture contains the frames of every pair of ends.
func TestCaptureXDP(t *testing.T) {
	labtest.RequireXDP(t)
	file := filepath.Join(t.TempDir(), "xdp.pcapng")
	got := datbench(t, "--transport", "xdp", "--pcap", file, "--op", "send,write,raw", "--metric", "lat", "--duration", "50ms", "--warmup", "10ms", "--json", "-")
	checkReport(t, got, []byte(got.stdout))
	checkCapture(t, file, lab.A.Addr4().String(), lab.B.Addr4().String())
}

// TestImpairedServerAndRun: the server and the client drop and damage packets, over AF_XDP and over UDP. All
// transferred bytes are nevertheless correct.
func TestImpairedServerAndRun(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	labtest.RequireXDP(t)
	for _, tt := range []struct{ name, server, client string }{
		{"xdp", "xdp:" + lab.Interface, "xdp:" + lab.Interface},
		{"udp", "udp:" + lab.A.Addr4().String(), "udp:" + lab.B.Addr4().String()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := inLab(t, l, lab.A, "server", "--ia", tt.server, "--impair", "loss=2%,corrupt=1%,seed=9")
			server.awaitLine(t, "^serving on .*, impaired by loss=0.02,corrupt=0.01,seed=9$")
			file := filepath.Join(t.TempDir(), "run.pcapng")
			client := inLab(t, l, lab.B, "run", lab.A.Addr4().String(), "--ia", tt.client, "--impair", "loss=2%,dup=1%,seed=8",
				"--pcap", file, "--op", "send,write,read", "--metric", "lat,sha256", "--bytes", "2MiB", "--duration", "50ms", "--warmup", "10ms", "--json", "-")
			checkImpaired(t, checkReport(t, client.wait(t), []byte(client.stdout.String())), "loss=0.02,dup=0.01,seed=8")
			checkCapture(t, file, lab.A.Addr4().String(), lab.B.Addr4().String())
			if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if got := server.wait(t); got.code != exitValid || strings.Contains(got.stderr, "datbench:") {
				t.Errorf("server: exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

//go:build datprovider

package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

const (
	// latencyRatio is the maximum of dapltest's mean latency divided by datbench's mean latency.
	latencyRatio = 1.5
	// latencyRounds is the number of rounds. Each round measures datbench and then dapltest. Other load of the host
	// increases a mean, so the test compares the smallest mean of each program.
	latencyRounds = 6
	// briefRounds is the number of rounds with -short.
	briefRounds = 2
	// latencyAttempts is the maximum number of rounds, including rounds that datbench discards because the host was
	// busy.
	latencyAttempts = 15
)

// TestLatency compares two measurements of the latency of 64-byte RDMA writes: one by dapltest, which is a C program,
// and one by datbench. Both figures are round trips. With dapltest the round trip is a write and its acknowledgement,
// from the post to the completion. With datbench it is a write in each direction; each side sees the write in its
// memory. Over UDP the ratio is printed but not checked, because the kernel's own mean latency varies by half. With -short
// it is not checked over AF_XDP either, because other programs of the host may disturb the few rounds.
func TestLatency(t *testing.T) {
	requireProvider(t)
	datbench := filepath.Join(t.TempDir(), "datbench")
	if out, err := exec.Command("go", "build", "-o", datbench, "../datbench").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	alone(t, func(h *hosts) {
		rounds, least, bestC, bestGo := 0, latencyRounds, math.Inf(1), math.Inf(1)
		if testing.Short() {
			least = briefRounds
		}
		judged := !testing.Short() && !strings.HasSuffix(h.t.Name(), "/udp")
		slow := func() bool { return judged && bestC > latencyRatio*bestGo }
		for try := 0; try < latencyAttempts && (rounds < least || slow()); try++ {
			goMean, goMedian, err := h.datbenchLatency(datbench)
			if err != nil {
				h.t.Log(err)
				continue // skip dapltest too, so that both have the same number of rounds
			}
			cMean := h.dapltestLatency()
			h.t.Logf("C %.2f us, Go %.2f us (median %.2f)", cMean, goMean, goMedian)
			rounds++
			bestC, bestGo = min(bestC, cMean), min(bestGo, goMean)
		}
		if rounds < least {
			h.t.Skipf("this host is too busy to measure: %d rounds of %d", rounds, latencyAttempts)
		}
		h.t.Logf("write: C %.2f us, Go %.2f us, ratio %.2f", bestC, bestGo, bestC/bestGo)
		if slow() {
			h.t.Errorf("the best mean of dapltest is %.2f us, more than %.1f times that of datbench, %.2f us", bestC, latencyRatio, bestGo)
		}
	})
}

// datbenchLatency returns the latency that datbench measures, in microseconds, or an error if the host is too busy.
func (h *hosts) datbenchLatency(datbench string) (mean, median float64, err error) {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "latency.json")
	server := h.start(lab.A, datbench+" server --ia "+h.link(lab.A))
	server.awaitText(h.t, "serving on", 1)
	h.start(lab.B, fmt.Sprintf("%s run %s --ia %s --op write --metric lat --size 64 --duration 300ms --json %s",
		datbench, lab.A.Addr4(), h.link(lab.B), file)).wait()
	must(h.t, server.cmd.Process.Kill())
	<-server.done
	text, err := os.ReadFile(file)
	must(h.t, err)
	var report struct {
		Results []struct {
			Rate   float64 `json:"msgs_per_s"`
			Median float64 `json:"p50_us"`
			Valid  bool
			Reason string
		}
	}
	must(h.t, json.Unmarshal(text, &report))
	if len(report.Results) != 1 {
		h.t.Fatalf("no result of datbench: %s", text)
	}
	r := report.Results[0]
	if !r.Valid {
		return 0, 0, errors.New("datbench: " + r.Reason)
	}
	return 1e6 / r.Rate, r.Median, nil
}

var latencyMean = regexp.MustCompile(`(?m)^Latency\n\s*Arithmetic mean\s*: ([0-9.]+) us`)

// dapltestLatency returns dapltest's mean latency in microseconds. dapltest has one outstanding write and polls for
// completions.
func (h *hosts) dapltestLatency() (mean float64) {
	h.t.Helper()
	server := h.start(lab.A, "dapltest -T S -D ia")
	server.awaitText(h.t, "Service Point Ready", 1)
	out := h.start(lab.B, h.client("dapltest -T P -i 10000 -p 1 -m p RW 64 1")).wait()
	server.awaitText(h.t, "Service Point Ready", 2)
	m := latencyMean.FindStringSubmatch(out)
	if m == nil {
		h.t.Fatalf("dapltest told no latency:\n%s", out)
	}
	_, err := fmt.Sscan(m[1], &mean)
	must(h.t, err)
	h.start(lab.B, h.client("dapltest -T Q")).wait()
	server.wait()
	return mean
}

package tool

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/datxdp/datxdp/internal/result"
)

// TestParse checks each parser with the real output of its tool.
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		file, metric string
		parse        func(string, *result.Result) error
		want         result.Result
	}{
		{"ucx_lat.txt", result.Latency, parseUCX, result.Result{P50: micros(11.096), MsgsPerSec: 33020.737}},
		{"ucx_rate.txt", result.Rate, parseUCX, result.Result{MsgsPerSec: 87511, Gbps: 0.044795}},
		{"ucx_bw.txt", result.Bandwidth, parseUCX, result.Result{MsgsPerSec: 832, Gbps: 6.976890}},
		{"libfabric.txt", result.Latency, parseLibfabric, result.Result{P50: micros(480.66), MsgsPerSec: 2080.473}},
		{"sockperf_lat.txt", result.Latency, parseSockperf, result.Result{P50: micros(15.202), P99: micros(7997.715)}},
		{"sockperf_rate.txt", result.Rate, parseSockperfRate, result.Result{MsgsPerSec: 204765}},
		{"iperf3.json", result.Bandwidth, parseIperf3, result.Result{Gbps: 12.750593}},
		{"go.json", result.Latency, parseGo, result.Result{P50: micros(65.5), P99: micros(120), MsgsPerSec: 14000, Gbps: 0.007, Samples: 1400}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			got := result.Result{Row: result.Row{Metric: tt.metric}}
			if err := tt.parse(read(t, tt.file), &got); err != nil {
				t.Fatal(err)
			}
			tt.want.Metric = tt.metric
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0.0001, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestParseNonsense: output without a figure is an error that quotes the output.
func TestParseNonsense(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parse func(string, *result.Result) error
		text  string
		want  string
	}{
		{"ucx, nothing", parseUCX, "", `no figures in ""`},
		{"ucx, an error", parseUCX, "UCX  ERROR No such device\n", `no figures in "UCX  ERROR No such device"`},
		{"ucx, too few", parseUCX, ucxHeader + "\n1,2,3\n", `not eight figures: "1,2,3"`},
		{"ucx, no numbers", parseUCX, ucxHeader + "\n1,2,3,4,x,6,7,8\n", `parsing "x"`},
		{"libfabric, nothing", parseLibfabric, "fi_getinfo: -61\n", `no figures in "fi_getinfo: -61"`},
		{"libfabric, header alone", parseLibfabric, "bytes usec/xfer Mxfers/sec\n", "not eight figures"},
		{"libfabric, no time", parseLibfabric, "usec/xfer\n64 5k =5k 625k 2.40s 0.27 0.00 0.00\n", "no time of a transfer"},
		{"sockperf", parseSockperf, "sockperf: ERROR\n", `no figures in "sockperf: ERROR"`},
		{"sockperf, no p99", parseSockperf, "percentile 50.000 =   3.0\n", "no figures"},
		{"sockperf rate", parseSockperfRate, "\n", "no figures"},
		{"iperf3", parseIperf3, "iperf3: error\n", `no JSON in "iperf3: error"`},
		{"iperf3, refused", parseIperf3, read(t, "iperf3_refused.json"), "unable to connect to server: Connection refused"},
		{"iperf3, empty", parseIperf3, "{}", "nothing was received"},
		{"go", parseGo, "peers: net: refused", `no figures in "peers: net: refused"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.parse(tt.text, &result.Result{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

package result

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// times returns a round-trip run with this median and p99.
func times(op string, p50, p99 float64) Result {
	r := Result{Row: Row{Op: op, Metric: Latency, Size: 64, MTU: 1500}, Valid: true}
	r.Count(1000, time.Second)
	r.P50, r.P99 = &p50, &p99
	return r
}

func invalid(r Result) Result {
	r.Invalidate("starved")
	return r
}

// TestRatios: runs are compared with runs of the same round, also after an invalid run.
func TestRatios(t *testing.T) {
	raw := Pool([]Result{times(Raw, 2, 4), times(Raw, 4, 4), invalid(times(Raw, 99, 1)), times(Raw, 10, 20)})
	send := Pool([]Result{times(Send, 3, 8), invalid(times(Send, 1, 1)), times(Send, 7, 7), times(Send, 20, 20)})
	if diff := cmp.Diff([]float64{1.5, 2}, Ratios(&send, &raw, P50)); diff != "" {
		t.Errorf("p50 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{2, 1}, Ratios(&send, &raw, P99)); diff != "" {
		t.Errorf("p99 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{3, 7, 20}, Values(&send, P50)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if got := Ratio([]Result{raw, send}, &send, Raw, P50); got != nil {
		t.Errorf("of two rounds of four: %g", *got)
	}
	three := Pool([]Result{times(Send, 3, 8), invalid(times(Send, 1, 1)), times(Send, 7, 7)})
	if got := Ratio([]Result{Pool([]Result{times(Raw, 2, 4), times(Raw, 4, 4), times(Raw, 1, 1)}), three}, &three, Raw, P50); got == nil || *got != 4.25 {
		t.Errorf("of two rounds of three: %v", got)
	}
	one := times(Raw, 2, 4)
	if diff := cmp.Diff([]float64{1.5}, Ratios(&send, &one, P50)); diff != "" {
		t.Errorf("beside one run (-want +got):\n%s", diff)
	}
	if got := Ratios(&send, &raw, P999); got != nil {
		t.Errorf("of what no row has: %v", got)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := Median(tt.of); got != tt.want {
			t.Errorf("%v: got %g, want %g", tt.of, got, tt.want)
		}
	}
}

// TestRawRatios: a row is compared with the plain row under the same conditions. Raw frames are as large as the MTU.
func TestRawRatios(t *testing.T) {
	bw := func(op string, mtu int, size int64, gbps float64) Result {
		return Result{Row: Row{Op: op, Metric: Bandwidth, Size: size, MTU: mtu}, Gbps: gbps, Valid: true}
	}
	churned, other := times(Send, 9, 18), times(Send, 5, 5)
	churned.Churn, other.Size = 1, 128
	busyRaw := times(Raw, 1, 1)
	busyRaw.Churn = 1
	r := Report{Results: []Result{busyRaw, times(Raw, 3, 6), times(Send, 6, 18), churned, other, invalid(times(Read, 6, 6)),
		bw(Raw, 1500, 1514, 10), bw(Raw, 9000, 9014, 20), bw(Send, 9000, 1<<20, 15), bw(TCP, 65000, 1<<20, 9)}}
	r.SetRawRatios()
	var got []string
	for _, row := range r.Results {
		for _, v := range []*float64{row.RawRatio, row.RawP99Ratio} {
			if v != nil {
				got = append(got, fmt.Sprint(row.Op, " ", *v))
			}
		}
	}
	want := []string{"send 2", "send 3", "send 3", "send 3", "send 0.75"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBaseTransport: two DAT operations are compared only if they have the same transport. Raw frames and kernel TCP are
// compared with both transports.
func TestBaseTransport(t *testing.T) {
	row := func(op, transport string) Result {
		return Result{Row: Row{Op: op, Metric: Bandwidth, Size: 1 << 20, MTU: 1500, Transport: transport}, Gbps: 1, Valid: true}
	}
	rows := []Result{row(Send, TransportUDP), row(Send, TransportXDP), row(Write, TransportXDP), row(Write, TransportUDP),
		row(Read, TransportUDP), row(Raw, TransportXDP), row(TCP, TransportTCP), row(TCPShared, TransportTCP)}
	for _, tt := range []struct{ op, transport, over, want string }{
		{Write, TransportXDP, Send, TransportXDP},
		{Write, TransportUDP, Send, TransportUDP},
		{Write, TransportXDP, Read, ""},
		{Write, TransportUDP, Raw, TransportXDP},
		{Write, TransportUDP, TCP, TransportTCP},
		{TCPShared, TransportTCP, TCP, TransportTCP},
		{Write, TransportUDP, Write, ""},
	} {
		r, got := row(tt.op, tt.transport), ""
		if b := Base(rows, &r, tt.over); b != nil {
			got = b.Transport
		}
		if got != tt.want {
			t.Errorf("%s over %s beside %s: got the row over %q, want %q", tt.op, tt.transport, tt.over, got, tt.want)
		}
	}
}

// TestRoundsJSON: all rounds of a row, valid or not, are on one line of the file.
func TestRoundsJSON(t *testing.T) {
	row := Pool([]Result{times(Send, 3, 8), invalid(times(Send, 1, 1))})
	text, err := (&Report{Results: []Result{row}}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `"rounds": [{"valid":true,"p50_us":3,"p99_us":8,"msgs_per_s":1000,"gbps":0.000512},{"valid":false,`
	if !strings.Contains(string(text), want) {
		t.Errorf("no %s in\n%s", want, text)
	}
}

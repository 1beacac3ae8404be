package metrics

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/stream"
)

// TestCollector: the metrics count dials, streams and bytes, also of streams that are closed.
func TestCollector(t *testing.T) {
	l, err := stream.Listen(t.Context(), "udp:127.94.0.1", 7000)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	x, err := stream.Dial(t.Context(), "udp:127.94.0.2", "127.94.0.1:7000")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Dial(t.Context(), "udp:127.94.0.2", "127.94.0.1:7001"); err == nil {
		t.Error("a port without a listener accepts")
	}
	c := NewCollector()
	expect := func(want map[string]float64) {
		t.Helper()
		c.readAt = time.Time{}
		got := gather(t, c)
		for name, v := range want {
			if got[name] != v {
				t.Errorf("%s is %v, want %v", name, got[name], v)
			}
		}
	}
	y, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(y, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	expect(map[string]float64{"streams in_use": 2, "streams pending": 0, "dials_total connected": 1, "dials_total failed": 1,
		"accepts_total": 1, "written_bytes_total": 100, "received_bytes_total": 100, "ring_bytes": 6144})
	if err := errors.Join(x.Close(), y.Close()); err != nil {
		t.Fatal(err)
	}
	expect(map[string]float64{"streams in_use": 0, "written_bytes_total": 100, "received_bytes_total": 100, "ring_bytes": 0})
}

// gather returns the values by name, without the prefix, and label.
func gather(t *testing.T, c *Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), prefix)
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return got
}

// TestDocument compares docs/METRICS.md with the families.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		kind := map[prometheus.ValueType]string{prometheus.CounterValue: "counter", prometheus.GaugeValue: "gauge"}[f.kind]
		if row := fmt.Sprintf("| `%s%s` | %s | %s | %s |\n", prefix, f.name, kind, f.label, f.help); !strings.Contains(string(text), row) {
			t.Errorf("docs/METRICS.md does not have the row\n%s", row)
		}
	}
}

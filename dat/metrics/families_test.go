package metrics

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/dat"
)

// fill sets every number in v to a different value, and records the path of each value.
func fill(v reflect.Value, path string, where map[float64]string) {
	next := float64(len(where) + 1)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), path+"."+v.Type().Field(i).Name, where)
		}
		return
	case reflect.Array, reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), fmt.Sprintf("%s[%d]", path, i), where)
		}
		return
	case reflect.Uint64:
		v.SetUint(uint64(next))
	case reflect.Int:
		v.SetInt(int64(next))
	case reflect.Float64:
		v.SetFloat(next)
	default:
		return
	}
	where[next] = path
}

// Every number of the statistics is exported.
func TestEveryCounter(t *testing.T) {
	s := sample{Stats: dat.Stats{
		Keys:     make([]dat.KeyStats, 1),
		Steering: make([]dat.Counter, 2),
		Queues: []dat.QueueStats{{Rings: make([]dat.RingStats, 4), Kernel: []dat.Counter{{Name: "rx_dropped"}, {Name: "rx_ring_full"},
			{Name: "rx_invalid_descs"}, {Name: "rx_fill_ring_empty_descs"}, {Name: "tx_invalid_descs"}, {Name: "tx_ring_empty_descs"}}}},
	}}
	where := map[float64]string{}
	fill(reflect.ValueOf(&s.Stats).Elem(), "Stats", where)
	s.Connections = 1000
	shown := map[float64]bool{}
	for i := range families {
		f := &families[i]
		if f.histogram != nil {
			h := f.histogram(&s)
			shown[float64(h.Sum)] = true
			for _, n := range h.Buckets {
				shown[float64(n)] = true
			}
			continue
		}
		f.show(&s, func(v float64, _ ...string) { shown[v] = true })
	}
	elsewhere := map[string]string{
		"Stats.ProtocolStats.Retransmits": "the sum of what is shown by cause",
		"Stats.Connections":               "the sum of what is shown by state",
		"Stats.Queues[0].Queue":           "a label",
	}
	if shown[float64(s.Backpressure+s.Link.TxFull)] { // one of the two is 0, depending on the link
		elsewhere["Stats.ProtocolStats.Backpressure"] = "shown as a sum"
		elsewhere["Stats.Link.TxFull"] = "shown as a sum"
	}
	for v, path := range where {
		if !shown[v] && elsewhere[path] == "" {
			t.Errorf("no metric shows %s", path)
		}
	}
}

const document = "../../docs/METRICS.md"

// units has the words in metric names that are units.
var units = []string{"seconds", "bytes", "packets", "messages", "slots", "events", "ratio"}

// table returns the table that docs/METRICS.md must have.
func table() string {
	var b strings.Builder
	b.WriteString("| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n")
	for _, f := range families {
		kind, unit := "histogram", ""
		switch {
		case f.histogram != nil:
		case f.kind == prometheus.CounterValue:
			kind = "counter"
		default:
			kind = "gauge"
		}
		for _, u := range units {
			if strings.Contains(f.name, "_"+u) {
				unit = u
			}
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s | %s |\n", prefix, f.name, kind, unit, strings.Join(f.labels, ", "), f.help)
	}
	return b.String()
}

func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "| metric |")
	got, _, _ := strings.Cut("| metric |"+rest, "\n\n")
	if got = strings.TrimSuffix(got, "\n") + "\n"; got != table() {
		t.Errorf("docs/METRICS.md does not have the table of the code, which is\n%s", table())
	}
}

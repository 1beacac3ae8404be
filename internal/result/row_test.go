package result

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// full is a row with every condition set.
var full = Row{Op: Send, Metric: Rate, Size: 64, Transport: "xdp", Connections: 8, BothWays: true, Depth: 4, Signal: 2, MTU: 1500,
	Churn: 1 << 30, Busy: 4, Realtime: true, Secure: true, Impair: "loss=0.01", AskedMode: "copy"}

func TestTexts(t *testing.T) {
	plain := Row{Op: RawAsavie, Metric: Bandwidth, Size: 1514, MTU: 1500}
	for _, tt := range []struct{ what, got, want string }{
		{"title", full.Title(), "message rate send 64 B × 8 both ways at MTU 1500, beside 1 GiB of churned heap, busy loops: 4, at real-time priority in secure mode in copy mode, impaired"},
		{"conditions", full.Conditions(), " × 8 both ways, depth 4, signal 2 at MTU 1500, beside 1 GiB of churned heap, busy loops: 4, at real-time priority in secure mode, impaired by loss=0.01 in copy mode"},
		{"label", full.Label(), "send × 8 both ways, depth 4, signal 2 churn, busy 4, realtime+aes, impaired, copy"},
		{"name", full.Name(), "send × 8"},
		{"title of a plain row", plain.Title(), "bandwidth raw_asavie 1514 B at MTU 1500"},
		{"label of a plain row", plain.Label(), "raw_asavie"},
		{"name of a plain row", plain.Name(), "raw_asavie"},
		{"one connection is no condition", Row{Op: Send, Metric: Rate, Connections: 1}.Title(), "message rate send"},
		{"title of a row over UDP", Row{Op: Write, Metric: Bandwidth, Size: 1 << 20, Transport: TransportUDP, MTU: 9000}.Title(), "bandwidth write 1 MiB over udp at MTU 9000"},
		{"title of no size", Row{Op: "x", Metric: "y"}.Title(), "y x"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got  %q\nwant %q", tt.what, tt.got, tt.want)
		}
	}
}

// TestPlace: rows of one table differ only in what the table shows.
func TestPlace(t *testing.T) {
	want := Row{Metric: Rate, MTU: 1500, Churn: 1 << 30, Busy: 4, Realtime: true, Secure: true, Impair: "loss=0.01", AskedMode: "copy"}
	if diff := cmp.Diff(want, full.Place()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSchema: every condition distinguishes rows in lists and in the page's tables, and has a help text.
func TestSchema(t *testing.T) {
	columns := map[string]bool{}
	for _, c := range Columns() {
		columns[c.Heading] = c.Of(&Result{Row: full}) != "" && c.Of(&Result{}) == ""
	}
	for _, f := range conditions {
		if !f.optional {
			continue
		}
		without := full.cleared(func(o field) bool { return o.key == f.key })
		if without == full || without.Label() == full.Label() || without.Conditions() == full.Conditions() {
			t.Errorf("%s: rows with and without it look the same", f.key)
		}
		if !columns[f.column] || !strings.Contains(Help(34), "  "+f.key+" ") || f.help == "" {
			t.Errorf("%s: no column, or no help", f.key)
		}
	}
}

// TestNewField: a field with only a json tag has texts and a column.
func TestNewField(t *testing.T) {
	type row struct {
		Transport string `json:"transport"`
		Pace      int    `json:"pace,omitempty"`
		Fast      bool   `json:"fast,omitempty"`
	}
	fields := conditionsOf(reflect.TypeFor[row]())
	want := []field{
		{key: "pace", column: "pace", title: ", pace %v", short: ", pace %v", optional: true, index: 1},
		{key: "fast", column: "fast", title: ", fast", short: ", fast", optional: true, index: 2},
	}
	if diff := cmp.Diff(want, fields, cmp.AllowUnexported(field{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOldFiles: files of older versions, without both_ways and with one connection written out, give the same rows.
func TestOldFiles(t *testing.T) {
	var old Result
	text := `{"op": "send", "metric": "bw", "size": 64, "connections": 1, "bidir": {"out_gbps": 1, "in_gbps": 2}}`
	if err := json.Unmarshal([]byte(text), &old); err != nil {
		t.Fatal(err)
	}
	old.upgrade()
	if want := (Row{Op: Send, Metric: Bandwidth, Size: 64, BothWays: true}); old.Row != want {
		t.Errorf("got %+v, want %+v", old.Row, want)
	}
}

package compare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/result"
)

// send has the fields of a valid bound, without its braces.
const send = `"op": "send", "metric": "lat", "size": 64, "mtu": 1500, "of": "p50_us", "over": "raw", "target": 1.4, "bound": 1.8`

// TestParseBounds: an error names the fault and its place.
func TestParseBounds(t *testing.T) {
	good, err := ParseBounds([]byte(`{"bounds": [{` + send + `}]}`))
	want := []Bound{{Row: result.Row{Op: "send", Metric: "lat", Size: 64, MTU: 1500}, Of: result.P50, Over: "raw", Target: 1.4, Limit: 1.8}}
	if diff := cmp.Diff(want, good); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	change := func(old, new string) string { return `{"bounds": [{` + strings.Replace(send, old, new, 1) + `}]}` }
	for _, tt := range []struct{ name, text, want string }{
		{"no JSON", "bounds:\n", "line 1: invalid character 'b' looking for beginning of value"},
		{"broken", "{\"bounds\": [\n{\n]}", "line 3: invalid character ']' looking for beginning of object key string"},
		{"cut short", `{"bounds": [`, "unexpected EOF"},
		{"no bounds", `{}`, `there are no bounds in it: want {"bounds": [{"op": …}, …]}`},
		{"more", `{"bounds": [{` + send + `}]} {}`, "more follows what should be all"},
		{"misspelt", `{"bound": []}`, `json: unknown field "bound"`},
		{"misspelt in the second", `{"bounds": [{` + send + `}, {"opp": 1}]}`, `bound 2: json: unknown field "opp"`},
		{"wrong kind", change(`1.4`, `"1.4"`), "bound 1: json: cannot unmarshal string into Go struct field Bound.target of type float64"},
		{"op", change(`"send"`, `"sends"`), `bound 1: "op" is "sends": want one of raw, raw_asavie, send, write, read, stream, tcp, tcp_shared, tcp_spin`},
		{"metric", change(`"lat"`, `"latency"`), `bound 1: "metric" is "latency": want one of lat, rate, rr, bw; "of" is "p50_us": rows of latency have no times`},
		{"size", change(`64`, `0`), `bound 1: "size" and "mtu" are the row's, in bytes`},
		{"of", change(`"p50_us"`, `"p50"`), `bound 1: "of" is "p50": want one of p50_us, p99_us, p999_us, msgs_per_s, gbps`},
		{"times of a rate", change(`"lat"`, `"rate"`), `bound 1: "of" is "p50_us": rows of rate have no times`},
		{"over", change(`"raw"`, `"send"`), `bound 1: "over" is "send": want another operation, such as raw or tcp`},
		{"over itself without impairment", change(`"raw"`, `"unimpaired"`), `bound 1: "over" is "unimpaired": the row has no "impair"`},
		{"no target", change(`"target": 1.4, `, ``), `bound 1: "target" is missing: what is aimed at, a positive number`},
		{"no bound", change(`, "bound": 1.8`, ``), `bound 1: "bound" is missing: what fails a run, a positive number`},
		{"judged alone", change(`"over": "raw", `, ``), `bound 1: "bound" without "over": what is not beside another row is shown, not judged`},
		{"twice", `{"bounds": [{` + send + `}, {` + strings.Replace(send, "1.8", "1.9", 1) + `}]}`, "bound 2: it is there twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ParseBounds([]byte(tt.text)); err == nil || err.Error() != tt.want {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func FuzzParseBounds(f *testing.F) {
	f.Add([]byte(`{"bounds": [{` + send + `}]}`))
	f.Add([]byte("{\"bounds\": [\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		bounds, err := ParseBounds(text)
		if err == nil && len(bounds) == 0 {
			t.Error("no bounds, and no error")
		}
		Judge(file(lat(1)), bounds)
	})
}

// row returns a row with these runs; 0 means an invalid run.
func row(op, metric string, runs ...float64) result.Result {
	var all []result.Result
	for _, v := range runs {
		r := result.Result{Row: result.Row{Op: op, Metric: metric, Size: 64, MTU: 1500}, Valid: true, Samples: 1, MsgsPerSec: v, Gbps: v, P50: &v}
		if v == 0 {
			r.Invalidate("starved")
		}
		all = append(all, r)
	}
	return result.Pool(all)
}

func TestJudge(t *testing.T) {
	us := Bound{Row: result.Row{Op: "send", Metric: "lat", Size: 64, MTU: 1500}, Of: result.P50, Over: "raw", Target: 1.4, Limit: 1.8}
	rate := Bound{Row: result.Row{Op: "send", Metric: "rate", Size: 64, MTU: 1500}, Of: result.MsgsPerSec, Over: "raw", Target: 3, Limit: 2}
	shown := rate
	shown.Over, shown.Limit = "", 0
	other := us
	other.MTU = 9000
	lossy := rate
	lossy.Impair, lossy.Over, lossy.Target, lossy.Limit = "loss=0.01", Unimpaired, 0.8, 0.5
	lost := row("send", "rate", 3)
	lost.Impair = lossy.Impair
	many := row("send", "rate", 9)
	many.Connections = 64
	noTimes := row("send", "lat", 3)
	noTimes.P50 = nil
	for _, tt := range []struct {
		name       string
		bound      Bound
		rows       []result.Result
		median     float64
		holds, met bool
		why        string
	}{
		{"target met", us, []result.Result{row("raw", "lat", 2), row("send", "lat", 2.5)}, 1.25, true, true, ""},
		{"bound kept", us, []result.Result{row("raw", "lat", 2), row("send", "lat", 3)}, 1.5, true, false, ""},
		{"bound broken", us, []result.Result{row("raw", "lat", 2), row("send", "lat", 4)}, 2, false, false, ""},
		{"paired", us, []result.Result{row("raw", "lat", 1, 10, 100), row("send", "lat", 1.5, 90, 150)}, 1.5, true, false, ""},
		{"rates the other way", rate, []result.Result{row("raw", "rate", 2), row("send", "rate", 5)}, 2.5, true, false, ""},
		{"rate broken", rate, []result.Result{row("raw", "rate", 2), row("send", "rate", 3)}, 1.5, false, false, ""},
		{"impaired", lossy, []result.Result{row("send", "rate", 4), lost}, 0.75, true, false, ""},
		{"impaired alone", lossy, []result.Result{lost}, 0, false, false, "no row of unimpaired beside it"},
		{"shown", shown, []result.Result{row("send", "rate", 4)}, 4, false, true, ""},
		{"of one connection", rate, []result.Result{row("raw", "rate", 2), many}, 0, false, false, "no such row"},
		{"one round lost", us, []result.Result{row("raw", "lat", 2, 2, 0), row("send", "lat", 3, 3, 3)}, 1.5, true, false, ""},
		{"half lost", us, []result.Result{row("raw", "lat", 2, 0), row("send", "lat", 3, 3)}, 0, false, false, "valid in 1 of 2 runs: raw: run 2 of 2: starved"},
		{"lost here", us, []result.Result{row("raw", "lat", 2), row("send", "lat", 0)}, 0, false, false, "valid in 0 of 1 runs: send: starved"},
		{"without the figure", us, []result.Result{row("raw", "lat", 2), noTimes}, 0, false, false, "valid in 0 of 1 runs: the others lack the figure"},
		{"no row", other, []result.Result{row("raw", "lat", 2), row("send", "lat", 4)}, 0, false, false, "no such row"},
		{"nothing beside it", us, []result.Result{row("send", "lat", 4)}, 0, false, false, "no row of raw beside it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := Judge(file(tt.rows...), []Bound{tt.bound})[0]
			if j.Median != tt.median || j.Holds() != tt.holds || j.Met() != tt.met || j.Missing+j.Invalid != tt.why || j.Known() != (tt.why == "") {
				t.Errorf("got %+v, holds %t, met %t", j, j.Holds(), j.Met())
			}
		})
	}
}

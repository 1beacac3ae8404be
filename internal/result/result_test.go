package result

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ptr(v float64) *float64 { return &v }

func TestHistogram(t *testing.T) {
	h := Histogram{{1, 50}, {2, 40}, {3, 9}, {1000, 1}}
	for _, tt := range []struct{ q, want float64 }{{0, 1}, {50, 1}, {51, 2}, {90, 2}, {99, 3}, {99.9, 1000}, {100, 1000}} {
		if got := h.Quantile(tt.q); got != tt.want {
			t.Errorf("p%g: got %g, want %g", tt.q, got, tt.want)
		}
	}
	if got := (Histogram{}).Quantile(50); got != 0 {
		t.Errorf("of nothing: got %g", got)
	}
	merged := h.Merge(Histogram{{0.5, 1}, {2, 2}})
	if diff := cmp.Diff(Histogram{{0.5, 1}, {1, 50}, {2, 42}, {3, 9}, {1000, 1}}, merged); diff != "" || merged.Total() != 103 {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}

// TestJSON: a file that was written can be read again, and has each long list on one line.
func TestJSON(t *testing.T) {
	want := &Report{Env: Env{Link: `"histogram_us": [`}, Results: []Result{{Row: Row{Op: Send, Metric: Latency}, Valid: true, Runs: []float64{1.5, 2}, Histogram: Histogram{{1.25, 3}, {1e7, 1}}}}}
	text, err := want.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); !strings.Contains(s, `"histogram_us": [[1.25,3],[10000000,1]]`) || !strings.Contains(s, `"runs": [1.5,2]`) {
		t.Errorf("got\n%s", s)
	}
	file := t.TempDir() + "/r.json"
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(file)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestReadFileErrors(t *testing.T) {
	for text, want := range map[string]string{"": "is not a file of datbench --json", "{}": "has no results in it", `{"results":[{"histogram_us":3}]}`: "is not a file of",
		`{"results":[{"p50_us":1},{"op":"send","metric":"lat","p50_us":1e308}]}`:       "result 2 (round trip send",
		`{"results":[{"op":"send","metric":"lat","histogram_us":[[5e-324,1],[1,2]]}]}`: "has a figure of 5e-324",
	} {
		file := t.TempDir() + "/r.json"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"results":[{"histogram_us":[[1,2],[3,4]],"runs":[1]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Report
		if json.Unmarshal(text, &r) != nil || len(r.Results) == 0 {
			return
		}
		_ = Pool(r.Results)
		if _, err := r.JSON(); err != nil {
			t.Error(err)
		}
	})
}

// rateRun returns a run of n operations in this number of seconds.
func rateRun(n int64, seconds float64) Result {
	r := Result{Row: Row{Op: Send, Metric: Rate, Size: 100}, Mode: "copy", Valid: true, Retransmits: 1}
	r.Count(n, time.Duration(seconds*float64(time.Second)))
	return r
}

func TestPool(t *testing.T) {
	bad := rateRun(10, 1)
	bad.Invalidate("starved")
	got := Pool([]Result{rateRun(1000, 1), bad, rateRun(3000, 2)})
	want := Result{Row: Row{Op: Send, Metric: Rate, Size: 100}, Mode: "copy", Samples: 4000, Retransmits: 2, Runs: []float64{1000, 1500},
		Rounds:     []Round{{Valid: true, MsgsPerSec: 1000, Gbps: 0.0008}, {Reason: "starved", MsgsPerSec: 10, Gbps: 8e-6}, {Valid: true, MsgsPerSec: 1500, Gbps: 0.0012}},
		MsgsPerSec: 4000.0 / 3, Gbps: 4000.0 / 3 * 800 / 1e9, Reason: "run 2 of 3: starved"}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Pool([]Result{bad, bad}); got.Valid || len(got.Runs) != 0 || got.Samples != 20 {
		t.Errorf("of invalid ones: got %+v", got)
	}
	other := rateRun(1000, 1)
	other.Mode = "zero-copy"
	if got := Pool([]Result{rateRun(1, 1), other}); got.Valid || got.Reason != "run 2 of 2: mode zero-copy, not copy" {
		t.Errorf("of two modes: got %+v", got)
	}
}

func TestPoolTimes(t *testing.T) {
	run := func(h Histogram) Result {
		r := Result{Row: Row{Op: Send, Metric: Latency, Size: 64}, Valid: true}
		r.Count(h.Total(), time.Second)
		r.SetTimes(h)
		return r
	}
	got := Pool([]Result{run(Histogram{{1, 6000}}), run(Histogram{{1, 3990}, {9, 10}})})
	if *got.P50 != 1 || *got.Max != 9 || got.P9999 == nil || *got.P9999 != 9 || *got.Min != 1 || got.Samples != 10000 {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]float64{1, 1}, got.Runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	few := run(Histogram{{1, 20}})
	few.P999 = nil
	if got := Pool([]Result{few, few}); got.P999 != nil || got.P99 == nil {
		t.Errorf("of few samples: got %+v", got)
	}
}

func TestFigure(t *testing.T) {
	for _, tt := range []struct {
		r    Result
		want float64
	}{
		{Result{Row: Row{Metric: Latency}, P50: ptr(3)}, 3}, {Result{Row: Row{Metric: Latency}}, 0},
		{Result{Row: Row{Metric: Rate}, MsgsPerSec: 5, Gbps: 1}, 5}, {Result{Row: Row{Metric: Bandwidth}, MsgsPerSec: 5, Gbps: 1}, 1},
	} {
		if got := tt.r.Figure(); got != tt.want {
			t.Errorf("%+v: got %g, want %g", tt.r, got, tt.want)
		}
	}
}

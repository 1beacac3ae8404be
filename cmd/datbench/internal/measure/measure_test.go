package measure

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

func TestLatencies(t *testing.T) {
	l := NewLatencies()
	for i := 1; i <= 1000; i++ {
		l.Record(time.Duration(i) * time.Microsecond)
	}
	l.Record(-time.Second)
	l.Record(time.Hour)
	var r result.Result
	l.Fill(&r, time.Second)
	near := func(got *float64, want float64) bool { return got != nil && *got > want*0.998 && *got < want*1.002 }
	if !near(r.P50, 500) || !near(r.P99, 991) || r.Samples != 1002 || r.MsgsPerSec != 1002 {
		t.Errorf("got p50 %v, p99 %v, %+v", *r.P50, *r.P99, r)
	}
}

func TestJudge(t *testing.T) {
	rate := plan.Spec{Row: result.Row{Metric: result.Rate}, Duration: time.Second}
	fine := Evidence{Spec: rate, Elapsed: time.Second, CoreShare: []float64{0.99, -1}}
	tests := []struct {
		name   string
		result result.Result
		change func(*Evidence)
		want   string
	}{
		{"fine", result.Result{Samples: 1}, func(*Evidence) {}, ""},
		{"counted loss is fine", result.Result{Samples: 1}, func(e *Evidence) { e.Lost, e.Counted = 5, 5 }, ""},
		{"uncounted loss", result.Result{Samples: 1}, func(e *Evidence) { e.Lost, e.Counted = 5, 3 }, "2 frames were lost and no counter tells where"},
		{"nothing", result.Result{}, func(*Evidence) {}, "nothing arrived"},
		{"nothing, starved", result.Result{}, func(e *Evidence) { e.CoreShare = []float64{0.1} },
			"nothing arrived; not saturated: a side had 10 % of a core, the host is busy with something else"},
		{"starved", result.Result{Samples: 1}, func(e *Evidence) { e.CoreShare = []float64{0.9, 0.25} },
			"not saturated: a side had 25 % of a core, the host is busy with something else"},
		{"starved beside busy loops", result.Result{Samples: 1, Row: result.Row{Busy: 2}}, func(e *Evidence) { e.CoreShare = []float64{0.25} }, ""},
		{"short", result.Result{Samples: 1}, func(e *Evidence) { e.Elapsed = time.Second / 2 }, "measured for 500ms of 1s"},
		{"mode", result.Result{Samples: 1, Mode: "copy"}, func(e *Evidence) { e.Spec.WantMode = "zero-copy" }, "asked for mode zero-copy, got copy"},
		{"few", result.Result{Samples: 999, Row: result.Row{Metric: result.Latency}}, func(*Evidence) {}, "999 samples are too few for a p99.9"},
		{"two reasons", result.Result{Samples: 9, Row: result.Row{Metric: result.Latency}, Mode: "copy"}, func(e *Evidence) { e.Spec.WantMode = "generic" },
			"asked for mode generic, got copy; 9 samples are too few for a p99.9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, r := fine, tt.result
			r.Valid = true
			tt.change(&e)
			Judge(&r, e)
			if r.Reason != tt.want || r.Valid != (tt.want == "") {
				t.Errorf("got valid %t, %q, want %q", r.Valid, r.Reason, tt.want)
			}
		})
	}
}

func TestTallyRoundTrip(t *testing.T) {
	want := Tally{Count: 1, Elapsed: 2, Retransmits: 3, Drops: 4, CoreShare: 0.5, Threads: result.Threads{Elapsed: 7, RunDelay: 8, Involuntary: 9}, Digest: [32]byte{6}}
	b := want.Encode(nil)
	if got := DecodeTally(b); got != want || len(b) != TallySize {
		t.Errorf("got %+v in %d bytes, want %+v in %d", got, len(b), want, TallySize)
	}
}

func TestSchedule(t *testing.T) {
	s := NewSchedule(plan.Spec{Warmup: time.Second, Duration: time.Second})
	for _, tt := range []struct {
		after time.Duration
		want  byte
	}{{-time.Millisecond, StageWarmUp}, {0, StageMeasure}, {999 * time.Millisecond, StageMeasure}, {time.Second, StageEnd}} {
		if got := s.Stage(s.Measure.Add(tt.after)); got != tt.want {
			t.Errorf("%s after the warm-up: got stage %d, want %d", tt.after, got, tt.want)
		}
	}
}

func TestCounter(t *testing.T) {
	var c Counter
	for _, stage := range []byte{StageWarmUp, StageWarmUp, StageMeasure, StageMeasure} {
		if c.Add(stage) {
			t.Errorf("stage %d is the last", stage)
		}
	}
	if !c.Add(StageEnd) || c.Count != 2 {
		t.Errorf("got %d messages, want 2", c.Count)
	}
}

// TestIdentity: every result names the conditions that differ from the default, even a result without a measurement.
func TestIdentity(t *testing.T) {
	spelt := plan.Spec{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, Depth: plan.RateDepth, Signal: plan.RateSignal, Connections: 1}}
	if want := (result.Row{Op: result.Send, Metric: result.Rate, Size: 64}); NewResult(spelt).Row != want {
		t.Errorf("defaults: got %+v", NewResult(spelt).Row)
	}
	odd := result.Row{Op: result.Send, Metric: result.Bandwidth, Size: 64, Depth: 3, Connections: 2, BothWays: true, Churn: 1, Busy: 5, Realtime: true, Impair: "dup=1"}
	if got := Failed(plan.Spec{Row: odd}, io.EOF).Row; got != odd {
		t.Errorf("failed: got %+v, want %+v", got, odd)
	}
}

// TestPhaseOf: a count ends the measured stage at exactly that operation.
func TestPhaseOf(t *testing.T) {
	s := NewSchedule(plan.Spec{Duration: time.Hour, Count: 3})
	var got []string
	for i := int64(0); i < 6; i++ {
		now := s.Measure.Add(time.Duration(i-1) * time.Second)
		got = append(got, fmt.Sprint(s.StageOf(i, now)))
	}
	if diff := cmp.Diff([]string{"1", "2", "2", "2", "3", "3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFew: kernel TCP may have few samples if packets are lost. Its row then has no p99.9.
func TestFew(t *testing.T) {
	for _, tt := range []struct {
		r     result.Result
		valid bool
	}{
		{result.Result{Row: result.Row{Op: result.TCP, Impair: "loss=0.01"}, Samples: 200}, true},
		{result.Result{Row: result.Row{Op: result.TCP, Impair: "loss=0.01"}, Samples: 99}, true},
		{result.Result{Row: result.Row{Op: result.TCP, Impair: "loss=0.01"}, Samples: 9}, false},
		{result.Result{Row: result.Row{Op: result.TCP}, Samples: 200}, false},
		{result.Result{Row: result.Row{Op: result.Send, Impair: "loss=0.01"}, Samples: 200}, false},
	} {
		r := tt.r
		r.Metric, r.Valid, r.P99, r.P999 = result.Latency, true, pointer(1), pointer(1)
		Judge(&r, Evidence{})
		if r.Valid != tt.valid || tt.valid && (r.P999 != nil || (r.P99 != nil) != (r.Samples >= 100)) {
			t.Errorf("%+v: got valid %t (%s)", tt.r, r.Valid, r.Reason)
		}
	}
}

func pointer(v float64) *float64 { return &v }

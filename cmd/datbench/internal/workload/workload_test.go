package workload

import (
	"reflect"
	"testing"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

func TestAskRoundTrip(t *testing.T) {
	want := Ask{
		Spec:   plan.Spec{Row: result.Row{Op: result.Write, Metric: result.Rate, Size: 64, Depth: 512, Connections: 3, Churn: 1 << 30, Busy: 3, Signal: 1 << 9, BothWays: true}, Bytes: 1 << 40, Warmup: time.Second, Duration: 2 * time.Second, Count: 1 << 33, More: true},
		remote: dat.RMRTriplet{Context: 1, Address: 2, Length: 3}, Session: 1 << 60, Index: 2, Job: 1 << 61,
	}
	got, err := DecodeAsk(want.Encode())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func FuzzDecodeAsk(f *testing.F) {
	f.Add(Ask{Spec: plan.Spec{Row: result.Row{Op: result.Send, Metric: result.Latency, Size: 64, Depth: 1}}}.Encode())
	f.Add(Ask{Spec: plan.Spec{Row: result.Row{Op: result.Read, Metric: result.Rate, Size: 64, Depth: 1, Connections: 4, BothWays: true}}, Index: 3}.Encode())
	f.Add(Ask{Spec: plan.Spec{Row: result.Row{Op: result.Send, Metric: result.Requests, Size: 64, Depth: 32, Churn: 1 << 20}}}.Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeAsk(b)
		if err != nil {
			return
		}
		if again, err := DecodeAsk(a.Encode()); err != nil || !reflect.DeepEqual(a, again) {
			t.Errorf("got %+v, %v, want %+v", again, err, a)
		}
		w, err := workloadFor(a.Spec.Op, a.Spec.Metric, a.Spec.BothWays)
		if err != nil {
			return
		}
		if _, sh := w.shape(a.Spec); buffers(a.Spec, sh) > plan.MaxBuffers || a.Spec.Window() > plan.MaxWindow {
			t.Errorf("%+v asks for too much memory", a.Spec)
		}
	})
}

func TestPieces(t *testing.T) {
	p := pieces{total: 2500, size: 1000, window: 2}
	if p.count() != 3 || p.length(0) != 1000 || p.length(2) != 500 || p.place(2) != 0 {
		t.Errorf("got %d pieces, last of %d bytes at %d", p.count(), p.length(2), p.place(2))
	}
}

func TestLastWord(t *testing.T) {
	b := make([]byte, 128)
	lastWord(b[:64]).Store(^uint64(0))
	for i, got := range b {
		if want := i >= 56 && i < 64; (got != 0) != want {
			t.Errorf("byte %d: got %d", i, got)
		}
	}
}

func TestWorkloads(t *testing.T) {
	for _, metric := range plan.RunMetrics {
		for _, op := range plan.Ops {
			w, err := workloadFor(op, metric, false)
			if metric == result.Requests && op != result.Send {
				if err == nil {
					t.Errorf("%s of %s: no error", metric, op)
				}
				continue
			}
			if err != nil {
				t.Error(err)
				continue
			}
			i, p := w.shape(plan.Spec{Row: result.Row{Op: op, Metric: metric, Size: 64}})
			if i.messageSlots == 0 || p.messageSlots == 0 || i.numSources == 0 || p.numSources == 0 {
				t.Errorf("%s %s: shapes %+v, %+v lack room for the end of a row", metric, op, i, p)
			}
		}
	}
}

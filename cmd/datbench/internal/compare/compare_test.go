package compare

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/result"
)

func rate(op string, runs ...float64) result.Result {
	r := result.Result{Row: result.Row{Op: op, Metric: result.Rate, Size: 64}, Valid: true, MsgsPerSec: 1}
	if len(runs) == 1 {
		r.MsgsPerSec = runs[0]
	} else {
		r.Runs = runs
	}
	return r
}

func rr(runs ...float64) result.Result {
	r := rate(result.Send, runs...)
	r.Metric = result.Requests
	return r
}

func lat(us ...float64) result.Result {
	return result.Result{Row: result.Row{Op: result.Send, Metric: result.Latency, Size: 64}, Valid: true, P50: &us[0], Runs: us}
}

func file(rows ...result.Result) *result.Report { return &result.Report{Results: rows} }

func TestFiles(t *testing.T) {
	invalid := rate("a")
	invalid.Valid, invalid.Runs = false, nil
	other := rate("a", 1)
	other.MTU = 9000
	churned := rate("a", 1)
	churned.Churn = 1
	tests := []struct {
		name     string
		old, new []*result.Report
		verdict  string
		delta    float64
	}{
		{"faster", []*result.Report{file(rate("a", 10, 11, 12, 13, 14))}, []*result.Report{file(rate("a", 20, 22, 24, 26, 28))}, Better, 100},
		{"slower", []*result.Report{file(rate("a", 20, 22, 24, 26, 28))}, []*result.Report{file(rate("a", 10, 11, 12, 13, 14))}, Worse, -50},
		{"more requests", []*result.Report{file(rr(10, 11, 12, 13, 14))}, []*result.Report{file(rr(20, 22, 24, 26, 28))}, Better, 100},
		{"longer", []*result.Report{file(lat(1, 1.1, 1.2, 1.3))}, []*result.Report{file(lat(2, 2.2, 2.4, 2.6))}, Worse, 100},
		{"shorter", []*result.Report{file(lat(2, 2.2, 2.4, 2.6))}, []*result.Report{file(lat(1, 1.1, 1.2, 1.3))}, Better, -50},
		{"mixed", []*result.Report{file(rate("a", 10, 12, 14, 16, 18))}, []*result.Report{file(rate("a", 11, 13, 14.7, 15, 19))}, Same, 5},
		{"few", []*result.Report{file(rate("a", 1, 1, 1))}, []*result.Report{file(rate("a", 2, 2, 2))}, TooFew, 100},
		{"single", []*result.Report{file(rate("a", 1))}, []*result.Report{file(rate("a", 2))}, TooFew, 100},
		{"files are pooled", []*result.Report{file(rate("a", 1)), file(rate("a", 1.1)), file(rate("a", 1.2, 1.3))},
			[]*result.Report{file(rate("a", 2.3)), file(rate("a", 2.3)), file(rate("a", 2.3, 2.3))}, Better, 100},
		{"same", []*result.Report{file(rate("a", 1, 1, 1, 1))}, []*result.Report{file(rate("a", 1, 1, 1, 1))}, Same, 0},
		{"invalid", []*result.Report{file(invalid)}, []*result.Report{file(rate("a", 1, 2))}, Invalid, math.NaN()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows := Files(tt.old, tt.new)
			if len(rows) != 1 || rows[0].Verdict != tt.verdict || math.Abs(rows[0].Delta-tt.delta) > 0.01 || math.IsNaN(rows[0].Delta) != math.IsNaN(tt.delta) {
				t.Errorf("got %+v, want %s, %+.1f %%", rows, tt.verdict, tt.delta)
			}
		})
	}
	var got []string
	for _, r := range Files([]*result.Report{file(rate("a", 1), rate("b", 1))}, []*result.Report{file(rate("c", 1), rate("b", 1), other, churned)}) {
		got = append(got, r.Op+" "+r.Verdict)
	}
	if diff := cmp.Diff([]string{"a only in old", "b too few runs", "c only in new", "a only in new", "a only in new"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLeast: four runs per side can show a difference at the 5 % level; three cannot.
func TestLeast(t *testing.T) {
	if l3, l4 := least(3, 3), least(4, 4); math.Abs(l3-0.1) > 1e-9 || math.Abs(l4-2.0/70) > 1e-9 {
		t.Errorf("got %g, %g, want 1/10, 1/35", l3, l4)
	}
}

func TestWorsened(t *testing.T) {
	rows := []Row{{Verdict: Worse, Delta: -4}, {Verdict: Worse, Delta: 6}, {Verdict: Better, Delta: 50}, {Verdict: Same, Delta: 50}}
	if got := Worsened(rows, 5); len(got) != 1 || got[0].Delta != 6 {
		t.Errorf("got %+v", got)
	}
	if got := Enough(rows); got != "" {
		t.Errorf("got %q", got)
	}
	want := "1 of 1 rows have too few runs to tell: at least 4 of each side are needed, 10 are better (--repeat)"
	if got := Enough([]Row{{Verdict: TooFew}}); got != want {
		t.Errorf("got %q", got)
	}
}

// TestTransports: rows that differ only in transport are never matched with each other, neither between two sets of files
// nor by a bound.
func TestTransports(t *testing.T) {
	over := func(transport string, runs ...float64) result.Result {
		r := rate(result.Write, runs...)
		r.Transport, r.MTU = transport, 1500
		return r
	}
	xdp, udp := over(result.TransportXDP, 10, 11, 12, 13), over(result.TransportUDP, 1, 1.1, 1.2, 1.3)
	for _, tt := range []struct {
		name        string
		old, recent *result.Report
		want        map[string]string
	}{
		{"both in both", file(xdp, udp), file(udp, xdp), map[string]string{"xdp": Same, "udp": Same}},
		{"one each", file(xdp), file(udp), map[string]string{"xdp": OnlyOld, "udp": OnlyNew}},
		{"one more", file(xdp), file(xdp, udp), map[string]string{"xdp": Same, "udp": OnlyNew}},
	} {
		got := map[string]string{}
		for _, r := range Files([]*result.Report{tt.old}, []*result.Report{tt.recent}) {
			got[r.Transport] = r.Verdict
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	bound := Bound{Row: result.Row{Op: result.Write, Metric: result.Rate, Size: 64, MTU: 1500}, Of: result.MsgsPerSec, Target: 1}
	slow, fast := over(result.TransportUDP, 2), over(result.TransportXDP, 20)
	for _, tt := range []struct {
		transport string
		rows      []result.Result
		want      float64
	}{
		{"", []result.Result{slow, fast}, 20},
		{"", []result.Result{fast, slow}, 20},
		{"", []result.Result{slow}, 2},
		{result.TransportUDP, []result.Result{fast, slow}, 2},
		{result.TransportXDP, []result.Result{slow}, 0},
	} {
		bound.Transport = tt.transport
		if j := Judge(file(tt.rows...), []Bound{bound})[0]; j.Median != tt.want {
			t.Errorf("transport %q of %d rows: got %g, want %g", tt.transport, len(tt.rows), j.Median, tt.want)
		}
	}
}

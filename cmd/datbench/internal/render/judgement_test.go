package render

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/datxdp/datxdp/cmd/datbench/internal/compare"
	"github.com/datxdp/datxdp/internal/result"
)

// TestCheckWidth: the widest figures fit a terminal of 80 columns.
func TestCheckWidth(t *testing.T) {
	us := compare.Bound{Row: result.Row{Op: result.Send, Metric: result.Latency, Size: 1 << 20, MTU: 65000, Churn: 1}, Of: "p999_us", Target: 99999}
	ratio := us
	ratio.Over, ratio.Limit, ratio.Churn = result.Raw, 99.99, 0
	all := []compare.Judgement{{Bound: us, Values: []float64{11111, 99999}, Median: 55555}, {Bound: ratio, Values: []float64{10.11, 99.99}, Median: 50},
		{Bound: ratio, Invalid: strings.Repeat("a reason, ", 20)}}
	var b strings.Builder
	if judged, broken := Judgements(&b, all); judged != 2 || broken == 0 {
		t.Errorf("%d of %d bounds do not hold", broken, judged)
	}
	lines := slices.Collect(strings.Lines(b.String()))
	for _, line := range lines {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if len(lines) < 8 {
		t.Errorf("got\n%s", b.String())
	}
}

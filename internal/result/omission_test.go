package result

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// starved returns a run that had only this share of a core.
func starved(r Result, percent int) Result {
	r.Invalidate("not saturated: a side had %d %% of a core", percent)
	return r
}

// TestOmissions: equal reasons are merged into one, with the range of their numbers.
func TestOmissions(t *testing.T) {
	good := times(Send, 3, 8)
	rows := []Result{
		good,
		Pool([]Result{starved(good, 40), good, starved(good, 7), starved(good, 12)}),
		starved(times(Read, 3, 8), 9),
		Pool([]Result{good, invalid(good)}),
		invalid(good),
		Pool([]Result{invalid(good), invalid(good)}),
	}
	var got []string
	for _, o := range Omissions(rows) {
		for _, r := range o.Rows {
			got = append(got, fmt.Sprintf("%d %v: %s", r.Row, r, o.Reason))
		}
	}
	const share, other = "not saturated: a side had 7 to 40 % of a core", "starved"
	want := []string{"1 runs 1, 3 and 4 of 4: " + share, "2 : " + share, "3 run 2 of 2: " + other, "4 : " + other, "5 each of 2 runs: " + other}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := rows[1].Reason, "runs 1, 3 and 4 of 4: "+share; got != want {
		t.Errorf("reason of the row: got %q, want %q", got, want)
	}
	if rows[1].ValidRuns() != 1 || rows[2].ValidRuns() != 0 || rows[0].ValidRuns() != 1 {
		t.Errorf("valid runs: %d, %d, %d", rows[1].ValidRuns(), rows[2].ValidRuns(), rows[0].ValidRuns())
	}
}

// TestOmissionsOdd: no content of a file causes a panic.
func TestOmissionsOdd(t *testing.T) {
	odd := []Result{{Reason: "# 5"}, {Reason: "5 #"}, {Reason: "# #"}, {}, {Rounds: []Round{{}, {Reason: "]"}, {Reason: `"rounds": [1]`}}}}
	if n := len(Omissions(odd)); n != 5 {
		t.Errorf("got %d reasons, want 5", n)
	}
	text, err := (&Report{Results: odd}).JSON()
	if err != nil || !strings.Contains(string(text), `"rounds": [{"valid":false},{"valid":false,"reason":"]"},{`) {
		t.Errorf("%v\n%s", err, text)
	}
}

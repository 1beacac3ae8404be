package compare

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/datxdp/datxdp/internal/result"
)

// Verdicts of a row.
const (
	Better  = "better"
	Worse   = "worse"
	Same    = "no change seen" // the difference is within the variation of the runs
	TooFew  = "too few runs"   // so few runs cannot show a difference
	OnlyOld = "only in old"
	OnlyNew = "only in new"
	Invalid = "not valid"
)

// Row is one measurement in the old and the new files.
type Row struct {
	result.Row
	// Old and New are the medians of the runs: µs, messages per second or Gb/s.
	Old, New float64
	// OldRuns and NewRuns are the numbers of valid runs.
	OldRuns, NewRuns int
	// Delta is the change from Old to New in percent. P is the probability that chance alone causes such a difference
	// (Mann-Whitney U test). Both are NaN if one side is missing.
	Delta, P float64
	Verdict  string
}

// alpha is the significance level: a difference with a smaller P counts.
const alpha = 0.05

// Files compares the rows of two sets of files. The runs of a row are pooled over all files of a set; a row that was
// not repeated contributes one run.
func Files(before, after []*result.Report) []Row {
	old, recent := collect(before), collect(after)
	var rows []Row
	for _, k := range slices.Concat(old.keys, recent.keys) {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Row == k }) {
			rows = append(rows, compare(k, old, recent))
		}
	}
	return rows
}

// runs holds the figures of every row of some files, by measurement.
type runs struct {
	keys []result.Row
	of   map[result.Row][]float64
}

func collect(reports []*result.Report) runs {
	all := runs{of: map[result.Row][]float64{}}
	for _, rep := range reports {
		for i := range rep.Results {
			r := &rep.Results[i]
			k := r.Row
			if _, known := all.of[k]; !known {
				all.keys = append(all.keys, k)
			}
			all.of[k] = append(all.of[k], figures(r)...)
		}
	}
	return all
}

// figures returns the figures of the valid runs. A row that was not repeated is one run.
func figures(r *result.Result) []float64 {
	switch {
	case len(r.Runs) > 0:
		return r.Runs
	case r.Valid && r.Figure() > 0:
		return []float64{r.Figure()}
	}
	return nil
}

func compare(k result.Row, old, recent runs) Row {
	a, inOld := old.of[k]
	b, inNew := recent.of[k]
	r := Row{Row: k, OldRuns: len(a), NewRuns: len(b), Delta: math.NaN(), P: math.NaN()}
	r.Old, r.New = center(a), center(b)
	switch {
	case !inNew:
		r.Verdict = OnlyOld
	case !inOld:
		r.Verdict = OnlyNew
	case len(a) == 0 || len(b) == 0:
		r.Verdict = Invalid
	default:
		r.judge(a, b)
	}
	return r
}

// center returns the median of the runs; 0 if there are none.
func center(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return benchmath.AssumeNothing.Summary(sample(values), 0.95).Center
}

func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.Thresholds{CompareAlpha: alpha})
}

func (r *Row) judge(a, b []float64) {
	r.Delta = 100 * (r.New/r.Old - 1)
	r.P = benchmath.AssumeNothing.Compare(sample(a), sample(b)).P
	switch {
	case least(len(a), len(b)) >= alpha:
		r.Verdict = TooFew
	case r.P >= alpha || r.Delta == 0:
		r.Verdict = Same
	case (r.Delta < 0) == (r.Metric == result.Latency):
		r.Verdict = Better
	default:
		r.Verdict = Worse
	}
}

// least returns the smallest possible p value with n runs on one side and m on the other. It belongs to the case in
// which every run of one side is below all runs of the other.
func least(n, m int) float64 {
	ways := 1.0 // binomial coefficient n+m over n
	for i := 1; i <= n; i++ {
		ways *= float64(m+i) / float64(i)
	}
	return 2 / ways
}

// Worsened returns the rows that are worse by more than percent.
func Worsened(rows []Row, percent float64) (out []Row) {
	for _, r := range rows {
		if r.Verdict == Worse && math.Abs(r.Delta) > percent {
			out = append(out, r)
		}
	}
	return out
}

// Enough returns a text with the number of runs that each side needs, if some row has too few; otherwise "".
func Enough(rows []Row) string {
	few := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Verdict != TooFew })
	if len(few) == 0 {
		return ""
	}
	need := 1
	for least(need, need) >= alpha {
		need++
	}
	return fmt.Sprintf("%d of %d rows have too few runs to tell: at least %d of each side are needed, 10 are better (--repeat)", len(few), len(rows), need)
}

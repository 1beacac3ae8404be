package network

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Row is a measured case: the medians of all seeds, or the largest figures if Case.Worst is set.
type Row struct {
	Name    string
	Metrics []Metric
}

// String returns one line.
func (r Row) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s", r.Name)
	for _, m := range r.Metrics {
		fmt.Fprintf(&b, " %s %s ", m.Name, format(m.Value))
	}
	return strings.TrimRight(b.String(), " ")
}

// format returns a number with three digits or more.
func format(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// Value returns the figure of a name; ok is false if the row has no such figure.
func (r Row) Value(name string) (value float64, ok bool) {
	for _, m := range r.Metrics {
		if m.Name == name {
			return m.Value, true
		}
	}
	return 0, false
}

// Measure measures cases with seeds from first on, on all processors. It calls done for each row, in the order of the
// cases.
func Measure(cases []Case, first uint64, seeds int, done func(Row)) {
	results := make([][][]Metric, len(cases))
	ready := make([]sync.WaitGroup, len(cases))
	type job struct{ row, seed int }
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				results[j.row][j.seed] = cases[j.row].Run(first + uint64(j.seed))
				ready[j.row].Done()
			}
		})
	}
	for i := range cases {
		results[i] = make([][]Metric, seeds)
		ready[i].Add(seeds)
	}
	workers.Go(func() {
		for i := range cases {
			for s := range seeds {
				jobs <- job{i, s}
			}
		}
		close(jobs)
	})
	for i := range cases {
		ready[i].Wait()
		done(cases[i].row(results[i]))
		results[i] = nil
	}
	workers.Wait()
}

// row puts the figures of all seeds together.
func (c *Case) row(seeds [][]Metric) Row {
	all := make([]Metric, len(seeds[0]))
	for i := range all {
		var x []float64
		for _, s := range seeds {
			x = append(x, s[i].Value)
		}
		all[i] = Metric{seeds[0][i].Name, median(x)}
		if c.Worst {
			all[i].Value = slices.Max(x)
		}
	}
	return Row{c.Name, all}
}

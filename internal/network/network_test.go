//go:build !race

package network

import (
	"slices"
	"strings"
	"testing"
)

// A seed determines every figure of a row.
func TestSeedDeterminesFigures(t *testing.T) {
	for _, c := range Cases() {
		if c.Name != "requests/25G/128K-ecn" && c.Name != "incast/25G/128K/8/64K" {
			continue
		}
		first, again, other := c.Run(1), c.Run(1), c.Run(2)
		if !slices.Equal(first, again) {
			t.Errorf("%s: one seed gave %v and %v", c.Name, first, again)
		}
		if slices.Equal(first, other) {
			t.Errorf("%s: two seeds gave the same figures", c.Name)
		}
	}
}

// Each row has a name of its own, and each target has rows.
func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range Cases() {
		if seen[c.Name] {
			t.Errorf("two rows are %s", c.Name)
		}
		seen[c.Name] = true
	}
	for _, target := range Targets() {
		found := false
		for name := range seen {
			found = found || target.has(name)
		}
		if !found {
			t.Errorf("no row is for the target %q", target.Text)
		}
	}
}

// The page has a table for each kind, and each kind has a comment.
func TestPage(t *testing.T) {
	var rows []Row
	for _, c := range Cases() {
		metrics := []Metric{{"jain", 0.5}, {"cold", 1.05}}
		rows = append(rows, Row{c.Name, metrics})
	}
	for _, k := range kinds(rows) {
		if k.Comment == "" {
			t.Errorf("no comment says what the rows of %s are", k.Name)
		}
	}
	var page strings.Builder
	if err := WritePage(&page, rows, 3); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"median of 3 seeds", "| ≥ 0.95 | 0.500 | **missed** |", "| ≤ 1.1 | 1.050 | met |", "\n### trouble\n", "| 25G/128K/8 | 0.500 | 1.050 |\n"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if n := strings.Count(page.String(), "\n### "); n != len(comments) {
		t.Errorf("%d kinds, want %d", n, len(comments))
	}
}

// A target is judged by its worst row, and Worst takes the largest figure of all seeds.
func TestJudge(t *testing.T) {
	rows := []Row{{"steady/25G/1M/2", []Metric{{"jain", 0.99}}}, {"steady/25G/1M/8", []Metric{{"jain", 0.9}}}, {"requests/25G/1M", []Metric{{"p50/alone", 4}}}}
	for _, r := range Judge(rows) {
		if jain := r.Metric == "jain"; r.Met == jain || jain && r.Row != "steady/25G/1M/8" {
			t.Errorf("%v", r)
		}
	}
	seeds := [][]Metric{{{"x", 1}}, {{"x", 5}}, {{"x", 2}}}
	for worst, want := range map[bool]float64{false: 2, true: 5} {
		c := Case{Worst: worst}
		if got, ok := c.row(seeds).Value("x"); !ok || got != want {
			t.Errorf("worst %v: %v, want %v", worst, got, want)
		}
	}
}

func TestAlarms(t *testing.T) {
	for _, n := range []int{1, 2, 3, 9} {
		a := newAlarms(n)
		if _, at := a.first(); at != never {
			t.Errorf("%d hosts: a new one has a time", n)
		}
		for i := range n {
			a.set(i, int64(100-i))
		}
		for i := n - 1; i >= 0; i-- {
			if got, at := a.first(); got != i || at != int64(100-i) || a.get(i) != at {
				t.Errorf("%d hosts: first is %d at %d, want %d", n, got, at, i)
			}
			a.set(i, never)
		}
	}
}

//go:build !race

package network

import (
	"slices"
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

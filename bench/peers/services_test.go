package main

import (
	"errors"
	"strings"
	"testing"
)

// TestServiceReport: a ratio is the median of the ratios of the rounds, and says whether the target is met.
func TestServiceReport(t *testing.T) {
	rounds := func(p50, p99 float64) []sample { return []sample{{p50, p99, 8}, {2 * p50, 2 * p99, 8}, {p50, p99, 8}} }
	met := &cell{Service: "met", service: service{floor: true, aboveFloor: 0.5}, TCP: rounds(100, 1000), XDP: rounds(50, 900),
		Floor: []sample{{P50: 20}, {P50: 20}, {P50: 20}}}
	missed := &cell{Service: "missed", Loss: 1, service: service{tail: 0.25}, TCP: rounds(100, 1000), XDP: rounds(50, 900), Floor: make([]sample, 3)}
	failed := &cell{Service: "failed", Faults: []string{"the client ended"}}
	r := newServiceReport(&servicesConfig{rounds: 3}, []*cell{met, missed, failed})
	for _, tt := range []struct{ row, want string }{
		{"met", "| met | 0 % | 20 | 100 (100–200) | 1000 | 8 | 50 | 900 | 8 | 0.50 | 0.38 | 0.90 | 1.00 | above floor ≤ 0.5: met |"},
		{"missed", "| missed | 1 % | – | 100 (100–200) | 1000 | 8 | 50 | 900 | 8 | 0.50 | – | 0.90 | 1.00 | p99 ≤ 0.25: missed |"},
		{"failed", "| failed | 0 % | (!) |"},
	} {
		if text := r.table().RenderMarkdown(); !strings.Contains(text, tt.want) {
			t.Errorf("%s: no row %s in\n%s", tt.row, tt.want, text)
		}
	}
	want := "failed at 0 % loss, 1 of 3 rounds: the client ended"
	if err := r.verdict(); !errors.Is(err, errInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

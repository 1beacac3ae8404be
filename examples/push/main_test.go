package main

import (
	"errors"
	"testing"
)

// TestSlowest: the first receiver that has nothing yet counts, one that is left out does not.
func TestSlowest(t *testing.T) {
	has := func(chunks int) *receiver { return &receiver{written: chunks, credited: chunks} }
	out := &receiver{err: errors.New("left out")}
	for _, tt := range []struct {
		all  []*receiver
		want int
	}{{nil, 0}, {[]*receiver{out}, 0}, {[]*receiver{has(0), has(5)}, 0}, {[]*receiver{has(5), has(0)}, 0}, {[]*receiver{out, has(7), has(5)}, 5}} {
		if got := (&sender{all: tt.all}).slowest(); got != tt.want {
			t.Errorf("%d receivers: got %d, want %d", len(tt.all), got, tt.want)
		}
	}
}

// TestOffer: no name leads out of the directory.
func TestOffer(t *testing.T) {
	for _, name := range []string{"file", "file.iso", "..."} {
		got, size, err := parseOffer(offer(name, 1<<40))
		if got != name || size != 1<<40 || err != nil {
			t.Errorf("%q: got %q, %d, %v", name, got, size, err)
		}
	}
	for _, bad := range [][]byte{nil, offer("", 1), offer("a", -1), offer(".", 1), offer("..", 1), offer("/", 1),
		offer("../a", 1), offer("/etc/a", 1), offer("a/b", 1), offer("a/", 1)} {
		if name, size, err := parseOffer(bad); err == nil {
			t.Errorf("%q is taken as %q of %d bytes", bad, name, size)
		}
	}
}

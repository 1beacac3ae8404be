package main

import (
	"testing"
)

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

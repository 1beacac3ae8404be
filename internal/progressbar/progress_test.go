package progressbar

import (
	"strings"
	"testing"
)

// TestLines: without a terminal every step is a line.
func TestLines(t *testing.T) {
	var out strings.Builder
	d := New(&out, 2)
	d.Begin("one")
	d.Around(func() { out.WriteString("between\n") })
	d.Begin("two")
	d.Note("waiting for 2 s")
	d.Note("waiting for 1 s")
	d.End()
	if got, want := out.String(), "[ 1/2] one\nbetween\n[ 2/2] two\n        waiting for 2 s\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

package workload

import "testing"

// What a peer sends as its reason has nothing in it that a terminal would obey.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"taken by 10.0.0.1 since 3 s": "taken by 10.0.0.1 since 3 s", "größer": "größer",
		"\x1b]0;owned\a\x1b[2J\nline\x9b31m": "?]0;owned??[2J?line\ufffd31m",
	} {
		if got := printable([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

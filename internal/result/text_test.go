package result

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPrintable: Printable removes everything that a terminal would interpret.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"taken by 10.0.0.1 since 3 s": "taken by 10.0.0.1 since 3 s", "größer × 2": "größer × 2",
		"\x1b]0;owned\a\x1b[2J\nline\x9b31m": "?]0;owned??[2J?line\ufffd31m",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestReadFilePrintable: no string of a file contains anything that a terminal would interpret.
func TestReadFilePrintable(t *testing.T) {
	const bad, want = "a\x1b[31m\u009b\n\u202e", "a?[31m???"
	row := Row{Op: bad, Metric: bad, Transport: bad, Impair: bad}
	text, err := (&Report{Env: Env{Link: bad, CPU: bad, Kernel: bad, Go: bad, Pcap: bad},
		Results: []Result{{Row: row, Mode: bad, Reason: bad, Rounds: []Round{{Reason: bad}}}}}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	res := r.Results[0]
	for _, got := range []string{r.Env.Link, r.Env.CPU, r.Env.Kernel, r.Env.Go, r.Env.Pcap, res.Op, res.Metric, res.Transport, res.Impair, res.Mode,
		res.Reason, res.Rounds[0].Reason} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if text, err := r.JSON(); err != nil || bytes.ContainsRune(text, '\u009b') || bytes.Contains(text, []byte(`\u001b`)) {
		t.Errorf("%v, a control character is left in %s", err, text)
	}
}

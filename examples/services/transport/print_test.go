package transport

import (
	"errors"
	"testing"
)

// TestPrintable: a text with control characters is quoted, so that it cannot control the terminal.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{"blue": "blue", "Grün 本": "Grün 本", "a\x1b]0;b\x07": `"a\x1b]0;b\a"`, "a\nb": `"a\nb"`, "\x9b31m": `"\x9b31m"`} {
		if got := Printable(text); got != want {
			t.Errorf("%q is printed as %s, want %s", text, got, want)
		}
	}
	err := errors.Join(errors.New("refused"), errors.New("the server says \x1b[31mred"))
	if got, want := printableError(err), "refused\n"+`"the server says \x1b[31mred"`; got != want {
		t.Errorf("the error is printed as %q, want %q", got, want)
	}
}

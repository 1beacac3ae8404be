package stream

import (
	"os"
	"strings"
	"testing"
)

// TestReadme: README.md and the package comment have the server and the client of the example, of 15 lines each.
func TestReadme(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	example, readme, comment := read("example_test.go"), read("../README.md"), read("doc.go")
	for _, name := range []string{"server", "client"} {
		_, rest, found := strings.Cut(example, "func "+name+"(")
		body, _, ends := strings.Cut(rest, "\n}\n")
		if !found || !ends {
			t.Fatalf("the example has no func %s", name)
		}
		if n := strings.Count(body, "\n"); n > 15 {
			t.Errorf("func %s has %d lines", name, n)
		}
		code := "func " + name + "(" + body + "\n}\n"
		if !strings.Contains(readme, code) {
			t.Errorf("README.md does not have func %s of the example", name)
		}
		if !strings.Contains(comment, "//\t"+strings.ReplaceAll(strings.TrimSuffix(code, "\n"), "\n", "\n//\t")+"\n") {
			t.Errorf("doc.go does not have func %s of the example", name)
		}
	}
}

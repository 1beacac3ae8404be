//go:build !race

package checks

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the example into docs/DAT.md")

// TestDocumentExample compares the Go block of docs/DAT.md with the compiled example that it quotes.
func TestDocumentExample(t *testing.T) {
	const source = "dat/example_test.go"
	if _, err := os.Stat(root + "/" + source); err != nil {
		t.Skipf("no example yet: %v", err)
	}
	want := exampleText(t, source)
	if n := strings.Count(want, "\n") - 2; n > 30 {
		t.Errorf("the body of the example has %d lines, want at most 30", n)
	}
	document := readFile(t, "docs/DAT.md")
	before, rest, found := strings.Cut(document, "<!-- example: "+source+" -->\n```go\n")
	if !found {
		t.Fatal("docs/DAT.md has no Go block for " + source)
	}
	got, after, _ := strings.Cut(rest, "```\n")
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("the Go block of docs/DAT.md is not Example of %s: go test ./internal/checks -update", source)
	}
	document = before + "<!-- example: " + source + " -->\n```go\n" + want + "```\n" + after
	if err := os.WriteFile(root+"/docs/DAT.md", []byte(document), 0o644); err != nil {
		t.Fatal(err)
	}
}

// exampleText returns the source of func Example without its doc comment.
func exampleText(t *testing.T, file string) string {
	t.Helper()
	text := readFile(t, file)
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "Example" {
			return text[fset.Position(fn.Pos()).Offset:fset.Position(fn.End()).Offset] + "\n"
		}
	}
	t.Fatalf("%s has no func Example", file)
	return ""
}

var (
	linkTarget = regexp.MustCompile(`\]\(([^)#]+)`)
	makeTarget = regexp.MustCompile("(?m)(?:`|^|sudo )make ([a-z-]+)")
)

// TestDocs checks the links and make targets in every document: the files and targets must exist.
func TestDocs(t *testing.T) {
	makefile := readFile(t, "Makefile")
	for _, doc := range documents(t) {
		text := readFile(t, doc)
		for _, m := range linkTarget.FindAllStringSubmatch(text, -1) {
			target := m[1]
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(path.Join(root, path.Dir(doc), target)); err != nil {
				t.Errorf("%s: link to %s: %v", doc, target, err)
			}
		}
		for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no make target %s", doc, m[1])
			}
		}
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var docs []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md", "vagrant/*.md", "examples/*.md", "monitoring/*.md", "bench/*.md", "examples/services/*.md"} {
		names, err := filepath.Glob(root + "/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			docs = append(docs, strings.TrimPrefix(n, root+"/"))
		}
	}
	if len(docs) < 6 {
		t.Errorf("found only %v", docs)
	}
	return docs
}

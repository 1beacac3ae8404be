//go:build !race

package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Limits of files, functions and types, in lines and fields.
const (
	maxFile     = 400
	maxFunction = 40
	maxFields   = 20
)

// sized lists the directories that must keep the limits.
var sized = []string{"wire", "wire/internal/*"}

// exempt lists the exceptions, with their reasons.
var exempt = map[string]string{
	"wire.ConnInfo": "a row of attributes",
	"wire.Counters": "counters",
	"proto.Parse":   "one flat case for each operation",
}

// TestSizes checks the limits of files, functions and types.
func TestSizes(t *testing.T) {
	looked := 0
	for _, dir := range sized {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				looked++
				checkSizes(t, file)
			}
		}
	}
	if looked < 40 {
		t.Errorf("looked at %d files only", looked)
	}
}

func checkSizes(t *testing.T, file string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := path.Base(path.Dir(filepath.ToSlash(file)))
	lines := func(n ast.Node) int { return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1 }
	report := func(what string, got, most int) {
		if _, ok := exempt[what]; !ok && got > most {
			t.Errorf("%s: %s has %d, want %d at most", file, what, got, most)
		}
	}
	report(name, fset.Position(f.End()).Line, maxFile)
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			report(name+"."+x.Name.Name, lines(x), maxFunction)
		case *ast.TypeSpec:
			if s, ok := x.Type.(*ast.StructType); ok {
				report(name+"."+x.Name.Name, fields(s), maxFields)
			}
		}
		return true
	})
}

// fields returns the number of fields of a struct type; an embedded type counts as one.
func fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(len(f.Names), 1)
	}
	return n
}

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

// Bounds of what a reader takes in at once, in lines and fields.
const (
	maxFile     = 400
	maxFunction = 40
	maxFields   = 20
)

// exempt are the exceptions, with the reason.
var exempt = map[string]string{
	"dat.ConnInfo":      "a row of attributes",
	"dat.IAAttr":        "a row of attributes",
	"dat.ProtocolStats": "counters",
	"dat.ProviderAttr":  "a row of attributes",
	"dat.datError":      "one case for each error",
	"plan.Options":      "one field for each flag",
	"proto.Parse":       "one flat case for each operation",
	"result.Result":     "a row of results",
	"simlink.Config":    "one field for each property of a network",
	"wire.ConnInfo":     "a row of attributes",
	"wire.Counters":     "counters",
}

// TestSizes holds files, functions and types to their bounds.
func TestSizes(t *testing.T) {
	used := make(map[string]bool)
	looked := 0
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			looked++
			checkSizes(t, file, used)
		}
	}
	if looked < 400 {
		t.Errorf("looked at %d files only", looked)
	}
	for what := range exempt {
		if !used[what] {
			t.Errorf("%s needs no exception", what)
		}
	}
}

// checkSizes checks one file. It adds the exceptions that apply to used.
func checkSizes(t *testing.T, file string, used map[string]bool) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join(root, file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(f) {
		return
	}
	name := path.Base(path.Dir(file))
	lines := func(n ast.Node) int { return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1 }
	report := func(what string, got, most int) {
		_, ok := exempt[what]
		switch {
		case got <= most:
		case ok:
			used[what] = true
		default:
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

// fields is the number of fields of a struct type; an embedded type is one.
func fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(len(f.Names), 1)
	}
	return n
}

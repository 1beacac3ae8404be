package dat

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// everyType has the methods that the document describes once for all types.
var everyType = map[string]bool{"String": true, "Error": true, "Is": true, "MarshalText": true, "Close": true,
	"HandleType": true, "SetConsumerContext": true, "ConsumerContext": true}

// documentedNames returns the Go names in docs/DAT.md: names of calls, and names in the table "Beyond uDAPL".
func documentedNames(t *testing.T) (names, beyond map[string]bool) {
	t.Helper()
	names, beyond = map[string]bool{}, map[string]bool{}
	for _, call := range readDocument(t).calls {
		of, _, _ := strings.Cut(call.goName, ".")
		names[call.goName] = true
		for _, name := range call.further {
			names[name], names[of+"."+name] = true, true
		}
	}
	_, table, found := strings.Cut(string(must(os.ReadFile("../docs/DAT.md"))(t)), "\n## Beyond uDAPL\n")
	if !found {
		t.Fatal("docs/DAT.md has lost a part")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, m := range quotedName.FindAllStringSubmatch(cells[1], -1) {
				names[m[1]], beyond[m[1]] = true, true
			}
		}
	}
	return names, beyond
}

// TestDocumentNamesEverything: docs/DAT.md names each exported function and method. It also names each exported type
// whose comment has no DAT name. Each name in the table "Beyond uDAPL" of that document is exported.
func TestDocumentNamesEverything(t *testing.T) {
	names, beyond := documentedNames(t)
	exported := exportedNames(t)
	for name := range beyond {
		if !exported[name] {
			t.Errorf("docs/DAT.md names %s, which is not exported", name)
		}
	}
	n := 0
	for _, file := range must(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f := must(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution))(t)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				of := receiver(d)
				if !d.Name.IsExported() || of != "" && (!ast.IsExported(of) || everyType[d.Name.Name]) {
					continue
				}
				if n++; !names[of+d.Name.Name] {
					t.Errorf("%s%s is not in docs/DAT.md", of, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, is := s.(*ast.TypeSpec); is && s.Name.IsExported() && !names[s.Name.Name] && !ofDAT(d.Doc) {
						t.Errorf("type %s is not in docs/DAT.md, and its comment names no type of uDAPL", s.Name.Name)
					}
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("looked at %d functions only", n)
	}
}

// ofDAT reports whether a comment names a type or a call of uDAPL (DAT_ or dat_).
func ofDAT(c *ast.CommentGroup) bool {
	return strings.Contains(c.Text(), "DAT_") || strings.Contains(c.Text(), "dat_")
}

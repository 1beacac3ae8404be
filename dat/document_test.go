package dat

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documented has the contents of docs/DAT.md: a line for each call, and the topics that do not belong to a single call.
type documented struct {
	calls  []documentedCall
	topics []string
}

type documentedCall struct {
	c       string
	goName  string   // Type.Method, or a function
	further []string // other Go names in the line
}

var quotedName = regexp.MustCompile("`([A-Za-z.]+)`")

// readDocument reads the table of calls and the paragraph of topics from docs/DAT.md.
func readDocument(t *testing.T) (d documented) {
	t.Helper()
	text, _, left := strings.Cut(string(must(os.ReadFile("../docs/DAT.md"))(t)), "\nThese calls are not supported")
	_, topics, named := strings.Cut(string(must(os.ReadFile("../docs/DAT.md"))(t)), "rules belong to no single call")
	topics, _, ended := strings.Cut(topics, "\n\n")
	if !left || !named || !ended {
		t.Fatal("docs/DAT.md has lost a part")
	}
	for _, m := range quotedName.FindAllStringSubmatch(topics, -1) {
		d.topics = append(d.topics, m[1])
	}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "dat_") {
			continue
		}
		call := documentedCall{c: strings.TrimSpace(cells[1]), goName: strings.TrimSpace(cells[2])}
		for _, m := range quotedName.FindAllStringSubmatch(cells[3], -1) {
			if name := m[1]; ast.IsExported(name) && name != strings.ToUpper(name) {
				call.further = append(call.further, name)
			}
		}
		d.calls = append(d.calls, call)
	}
	if len(d.calls) < 70 || len(d.topics) < 6 {
		t.Fatalf("docs/DAT.md has %d calls and %d topics", len(d.calls), len(d.topics))
	}
	return d
}

// exportedNames returns the names of all exported functions, types, values, methods and fields of the package. The
// names of methods and fields begin with the type: Type.Name.
func exportedNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range must(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f := must(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = d.Name.IsExported()
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = s.Name.IsExported()
						addFields(names, s)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							names[name.Name] = name.IsExported()
						}
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of a method's type, followed by a dot.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, pointer := of.(*ast.StarExpr); pointer {
		of = star.X
	}
	if name, plain := of.(*ast.Ident); plain {
		return name.Name + "."
	}
	return "?."
}

func addFields(names map[string]bool, s *ast.TypeSpec) {
	if fields, isStruct := s.Type.(*ast.StructType); isStruct {
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				names[s.Name.Name+"."+name.Name] = name.IsExported()
			}
		}
	}
}

// TestDocument compares docs/DAT.md with the code and with the rules of the conformance test. Every Go name in the
// document must exist, every DAT call must have rules, and every group of rules must belong to a call or a topic of the
// document.
func TestDocument(t *testing.T) {
	d, names := readDocument(t), exportedNames(t)
	rules := map[string]int{}
	for _, p := range conformance() {
		rules[p.of] = len(p.rules)
	}
	known := map[string]bool{}
	for _, call := range d.calls {
		known[call.c] = true
		if !names[call.goName] {
			t.Errorf("%s: there is no %s", call.c, call.goName)
		}
		of, _, _ := strings.Cut(call.goName, ".")
		for _, name := range call.further {
			if !names[name] && !names[of+"."+name] {
				t.Errorf("%s: there is no %s, nor as a method of %s", call.c, name, of)
			}
		}
		if rules[call.c] == 0 {
			t.Errorf("%s has no rule", call.c)
		}
	}
	for _, name := range d.topics {
		known[name] = true
		if rules[name] == 0 {
			t.Errorf("the topic %s has no rule", name)
		}
	}
	for name := range rules {
		if !known[name] {
			t.Errorf("the topic %s is no call and not named in docs/DAT.md", name)
		}
	}
}

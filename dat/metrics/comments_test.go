package metrics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// TestCounterComments: the comment of a protocol counter is the first sentence of its metric's help.
func TestCounterComments(t *testing.T) {
	helps := helpOfCounters()
	for _, e := range []struct{ file, name string }{{"../counters.go", "ProtocolStats"}, {"../../wire/stats.go", "Counters"}} {
		comments := fieldComments(t, e.file, e.name)
		for field, help := range helps {
			if got, want := plainText(comments[field]), plainText(help); got != want {
				t.Errorf("%s: %s.%s\n  comment %s\n  metric  %s", e.file, e.name, field, got, want)
			}
		}
	}
	if len(helps) < 40 {
		t.Errorf("only %d counters have a metric", len(helps))
	}
}

// helpOfCounters returns the first sentence of the help of the metric that shows each field of dat.ProtocolStats.
func helpOfCounters() map[string]string {
	helps := map[string]string{}
	var s sample
	where := map[float64]string{}
	fill(reflect.ValueOf(&s.ProtocolStats).Elem(), "", where)
	for _, f := range families {
		if f.histogram != nil {
			continue
		}
		f.show(&s, func(v float64, _ ...string) {
			field, _, _ := strings.Cut(strings.TrimPrefix(where[v], "."), "[")
			if field != "" {
				helps[field], _, _ = strings.Cut(f.help, ". ")
			}
		})
	}
	return helps
}

// fieldComments returns the comments of the fields of a struct type.
func fieldComments(t *testing.T, file, name string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, field := range parsed.Scope.Lookup(name).Decl.(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
		for _, n := range field.Names {
			comments[n.Name] = field.Doc.Text() + field.Comment.Text()
		}
	}
	return comments
}

// plainText returns a sentence on one line, without its capital letter and its period.
func plainText(s string) string {
	r := []rune(strings.TrimSuffix(strings.Join(strings.Fields(s), " "), "."))
	if len(r) > 1 && !unicode.IsUpper(r[1]) {
		r[0] = unicode.ToLower(r[0])
	}
	return string(r)
}

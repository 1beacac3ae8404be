//go:build !race

package checks

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

// TestImports checks every Go file of the module against the import table in docs/ARCHITECTURE.md. It includes files
// for other platforms and build tags, which no single run of the linter sees.
func TestImports(t *testing.T) {
	tab := readTable(t)
	files := 0
	for _, file := range goFiles(t) {
		files++
		if _, ok := tab.row(file); !ok {
			t.Errorf("%s: package has no row in docs/ARCHITECTURE.md and .golangci.yml", file)
			continue
		}
		for _, imp := range fileImports(t, file) {
			if !standard(imp) && !tab.allows(file, imp) {
				t.Errorf("%s may not import %s", file, imp)
			}
		}
	}
	if files < 10 {
		t.Errorf("looked at %d files only", files)
	}
}

// standard reports whether an import belongs to the standard library: the first element of its path has no dot.
func standard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "tools" || path.Base(name) == "testdata" || len(name) > 1 && path.Base(name)[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go"):
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func fileImports(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), root+"/"+file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var imps []string
	for _, spec := range f.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imps = append(imps, imp)
	}
	return imps
}

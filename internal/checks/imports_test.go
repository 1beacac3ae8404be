//go:build !race

package checks

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestImports holds every Go file to imports.txt, also the files for other platforms and build tags.
func TestImports(t *testing.T) {
	tab := readTable(t)
	files := goFiles(t)
	for _, file := range files {
		if _, ok := tab.row(file); !ok {
			t.Errorf("%s: its package has no row in %s", file, imports)
			continue
		}
		for _, imp := range fileImports(t, file) {
			if !tab.allows(file, imp) {
				t.Errorf("%s may not import %s: see %s", file, imp, imports)
			}
		}
	}
	if len(files) < 10 {
		t.Errorf("looked at %d files only", len(files))
	}
}

// TestImportTable: the table refuses what it does not have, and no row outlives its package.
func TestImportTable(t *testing.T) {
	tab := readTable(t)
	for _, e := range []struct {
		file, imp string
		want      bool
	}{
		{"wire/engine.go", "strings", true},
		{"wire/engine.go", module + "/link", true},
		{"wire/engine.go", module + "/wire/internal/proto", true},
		{"wire/engine.go", module + "/dat", false},
		{"wire/engine.go", module + "/internal/simlink", false},
		{"wire/engine.go", "golang.org/x/sys/unix", false},
		{"wire/engine.go", "unsafe", false},
		{"wire/place_unsafe.go", "unsafe", true},
		{"wire/engine_test.go", module + "/wire", true},
		{"wire/engine_test.go", module + "/internal/simlink", true},
		{"wire/engine_test.go", module + "/dat", false},
		{"xdp/ring.go", "golang.org/x/sys/unix", true},
		{"xdp/ring.go", "C", false},
		{"dat/ia.go", module + "/xdp", false},
		{"dat/provider_linux.go", module + "/xdp", true},
	} {
		if got := tab.allows(e.file, e.imp); got != e.want {
			t.Errorf("%s imports %s: allowed is %v", e.file, e.imp, got)
		}
	}
	for name := range tab {
		found, err := filepath.Glob(root + "/" + name)
		if err != nil || len(found) == 0 && name != "tests" && name != "unsafe" && name != "C" {
			t.Errorf("%s: the row %s has no package: %v", imports, name, err)
		}
	}
}

// TestArchitectureTable: the table of the core in docs/ARCHITECTURE.md has the rows of imports.txt.
func TestArchitectureTable(t *testing.T) {
	tab := readTable(t)
	_, text, found := strings.Cut(readFile(t, "docs/ARCHITECTURE.md"), "| package | may import |\n|---|---|\n")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md has no import table")
	}
	rows := 0
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			break
		}
		rows++
		name, want := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		var short []string
		for _, imp := range tab[name] {
			imp = strings.TrimPrefix(imp, "github.com/vishvananda/")
			short = append(short, strings.NewReplacer("github.com/", "", "golang.org/", "").Replace(imp))
		}
		if got := strings.Join(short, ", "); got != want && !(got == "" && want == "nothing") {
			t.Errorf("docs/ARCHITECTURE.md: %s may import %s; %s has %s", name, want, imports, got)
		}
	}
	if rows != 10 {
		t.Errorf("the table has %d rows, want 10", rows)
	}
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

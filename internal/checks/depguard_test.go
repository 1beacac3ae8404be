//go:build !race

package checks

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestDepguard checks that the linter enforces the import table in docs/ARCHITECTURE.md exactly. For each row it makes
// a module in which the package of the row, and a test beside it, import every package that exists.
func TestDepguard(t *testing.T) {
	lint, err := filepath.Abs(root + "/bin/golangci-lint")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lint); err != nil {
		t.Skip("bin/golangci-lint is not built: make lint builds it")
	}
	tab := readTable(t)
	for row := range tab.rows {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			checkRow(t, tab, lint, importable(row))
		})
	}
}

func checkRow(t *testing.T, tab table, lint, row string) {
	dir := t.TempDir()
	files := []string{row + "/code.go", row + "/code_test.go"}
	if strings.HasSuffix(row, ".go") {
		files = []string{row}
	}
	stubs(t, dir, tab)
	tried := map[string][]string{}
	for _, file := range files {
		tried[file] = writeImporter(t, dir, file, tab)
	}
	found := findings(t, lint, dir)
	for file, imps := range tried {
		for _, imp := range imps {
			if allowed := tab.allows(file, imp); allowed == found[file+" "+imp] {
				t.Errorf("%s imports %s: table allows %v, linter forbids %v", file, imp, allowed, found[file+" "+imp])
			}
		}
	}
}

// importable returns an import path that matches a pattern of the table.
func importable(imp string) string { return strings.Replace(imp, "*", "some", 1) }

// stubs writes an empty package for every import in the table. Other modules are replaced by stubs too.
func stubs(t *testing.T, dir string, tab table) {
	t.Helper()
	mod := "module " + module + "\n\ngo 1.26\n"
	for i, imp := range tab.packages() {
		imp = importable(imp)
		sub, ours := strings.CutPrefix(imp, module+"/")
		if !ours {
			sub = fmt.Sprintf("stub%d", i)
			version := "v0.0.0"
			if base := path.Base(imp); base[0] == 'v' && len(base) == 2 {
				version = base + ".0.0"
			}
			mod += fmt.Sprintf("require %s %s\nreplace %[1]s => ./%[3]s\n", imp, version, sub)
			write(t, filepath.Join(dir, sub, "go.mod"), "module "+imp+"\n")
		}
		write(t, filepath.Join(dir, sub, "stub.go"), "package stub\n")
	}
	write(t, filepath.Join(dir, "go.mod"), mod)
	write(t, filepath.Join(dir, ".golangci.yml"), readFile(t, ".golangci.yml"))
}

// writeImporter writes a file that imports every package that Go lets it import, and returns these imports.
func writeImporter(t *testing.T, dir, file string, tab table) []string {
	t.Helper()
	text := "package stub\n"
	test := strings.HasSuffix(file, "_test.go")
	if test {
		text = "package stub_test\n"
	}
	var imps []string
	for _, imp := range tab.packages() {
		imp = importable(imp)
		itself := imp == module+"/"+path.Dir(file)
		if parent, _, internal := strings.Cut(imp, "/internal/"); internal && !strings.HasPrefix(module+"/"+file, parent+"/") {
			continue
		}
		if itself && !test {
			continue
		}
		imps = append(imps, imp)
		text += fmt.Sprintf("import _ %q\n", imp)
	}
	write(t, filepath.Join(dir, file), text)
	return imps
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// findings runs only depguard and returns the set of "file import" that it forbids.
func findings(t *testing.T, lint, dir string) map[string]bool {
	t.Helper()
	cmd := exec.Command(lint, "run", "--allow-parallel-runners", "--enable-only", "depguard",
		"--output.json.path", "stdout", "--show-stats=false")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var report struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct{ Filename string }
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v in %q; %s", err, out, &stderr)
	}
	found := map[string]bool{}
	for _, i := range report.Issues {
		if i.FromLinter != "depguard" {
			t.Fatalf("%s: %s: %s", i.Pos.Filename, i.FromLinter, i.Text)
		}
		found[i.Pos.Filename+" "+strings.Split(i.Text, "'")[1]] = true
	}
	return found
}

//go:build !race

package checks

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	root    = "../.."
	module  = "github.com/datxdp/datxdp"
	imports = "internal/checks/imports.txt"
)

// table is the import table. It maps the name of each row of imports.txt to its words.
type table map[string][]string

func readTable(t *testing.T) table {
	t.Helper()
	tab := table{}
	for line := range strings.Lines(readFile(t, imports)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, words, found := strings.Cut(line, ":")
		if _, twice := tab[name]; !found || twice {
			t.Fatalf("%s: a row has the form name: words, and its name is unique: %q", imports, line)
		}
		tab[name] = strings.Fields(words)
	}
	return tab
}

// row returns what a file may import: from the row of the file, of its directory, or of a pattern, in this order.
func (tab table) row(file string) (allowed []string, ok bool) {
	dir := path.Dir(file)
	for _, name := range []string{file, dir, path.Dir(dir) + "/*"} {
		if allowed, ok = tab[name]; ok {
			break
		}
	}
	return allowed, ok
}

// allows reports whether a file may import a package.
func (tab table) allows(file, imp string) bool {
	if imp == "unsafe" || imp == "C" {
		return slices.ContainsFunc(tab[imp], func(pattern string) bool { return matches(pattern, file) })
	}
	if standard(imp) {
		return true
	}
	allowed, _ := tab.row(file)
	if strings.HasSuffix(file, "_test.go") {
		allowed = slices.Concat(allowed, tab["tests"], []string{path.Dir(file)})
	}
	own, ours := strings.CutPrefix(imp, module+"/")
	return slices.ContainsFunc(allowed, func(a string) bool {
		if ours {
			match, _ := path.Match(a, own)
			return match
		}
		return imp == a || strings.HasPrefix(imp, a+"/")
	})
}

// matches compares a file with a pattern, which is for the name alone if it has no slash.
func matches(pattern, file string) bool {
	if !strings.Contains(pattern, "/") {
		file = path.Base(file)
	}
	match, _ := path.Match(pattern, file)
	return match
}

// standard reports whether an import belongs to the standard library: the first element of its path has no dot.
func standard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(root + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

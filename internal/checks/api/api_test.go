//go:build !race

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module writes a module with the public package p, a promise and a change log.
func module(t *testing.T, source, changes string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n", "p/p.go": "package p\n\n" + source, "q/q.go": "package q\n\ntype T int\n",
		"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n" + changes + "\n## v0.1.0\n\n* [API change] `Handle.Wait`, `Limit` and `Old` are other ones.\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const released = `import "time"

const Limit = 3

var Err error

type Handle struct {
	base
	Size int
	own  int
}

type base struct{}

func (base) Kind() string { return "" }

func (h *Handle) Wait(timeout time.Duration, threshold int) (more int, err error) { return 0, nil }

type Old int

func (o Old) String() string { return "" }

type Link interface {
	Send(n int) error
	Close() error
}

func Open(name string, with ...*Handle) (*Handle, error) { return nil, nil }
`

func TestSurface(t *testing.T) {
	got, err := surface(module(t, released, ""), []string{"p"})
	want := []string{
		"pkg p, const Limit untyped int = 3",
		"pkg p, func Open(string, ...*Handle) (*Handle, error)",
		"pkg p, method (*Handle) Wait(time.Duration, int) (int, error)",
		"pkg p, method (Handle) Kind() string",
		"pkg p, method (Old) String() string",
		"pkg p, type Handle struct",
		"pkg p, type Handle struct, Size int",
		"pkg p, type Link interface { Close, Send }",
		"pkg p, type Link interface, Close() error",
		"pkg p, type Link interface, Send(int) error",
		"pkg p, type Old int",
		"pkg p, var Err error",
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v, %s", err, d)
	}
}

// TestPromise: a promised line must stay, unless the unreleased part of the change log names it.
func TestPromise(t *testing.T) {
	promise := module(t, released, "")
	if err := run(promise, "api.txt", []string{"p"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(promise, "api.txt"))
	if err != nil {
		t.Fatal(err)
	}
	without := func(s string) string { return strings.Replace(released, s, "", 1) }
	for what, tt := range map[string]struct {
		source, changes string
		broken          []string // the lines that the error must name; none if there is no error
	}{
		"unchanged":         {released, "", nil},
		"an addition":       {released + "\nfunc More() {}\n\nfunc (h *Handle) More() {}\n", "", nil},
		"names of results":  {strings.Replace(released, "more int", "left int", 1), "", nil},
		"a method":          {strings.Replace(released, "Wait(timeout", "wait(timeout", 1), "", []string{"(*Handle) Wait"}},
		"a field":           {without("\tSize int\n"), "", []string{"Handle struct, Size int"}},
		"a promoted method": {without("\tbase\n"), "", []string{"(Handle) Kind"}},
		"a value":           {strings.Replace(released, "Limit = 3", "Limit = 4", 1), "", []string{"const Limit untyped int = 3"}},
		"a type and its method": {strings.ReplaceAll(released, "Old", "Older"), "",
			[]string{"type Old int", "(Old) String"}},
		"a function's argument": {strings.Replace(released, "name string", "name []byte", 1), "* [New API] `Open` takes bytes.\n",
			[]string{"func Open(string"}},
		"another method of an interface": {strings.Replace(released, "Close() error\n", "Close() error\n\tRecv()\n", 1), "",
			[]string{"Link interface { Close, Send }"}},

		"a method, announced":                 {strings.Replace(released, "Wait(timeout", "wait(timeout", 1), "* [API change] `Handle.Wait` is gone.\n", nil},
		"a method, its type announced":        {strings.Replace(released, "Wait(timeout", "wait(timeout", 1), "* [API change] `Handle` is other.\n", []string{"Wait"}},
		"a method, another announced":         {strings.Replace(released, "Wait(timeout", "wait(timeout", 1), "* [API change] `Handle.Wait2` is gone.\n", []string{"Wait"}},
		"a type, announced":                   {strings.ReplaceAll(released, "Old", "Older"), "* [Tool] x.\n* [API change] a type:\n  `Old`.\n", nil},
		"a function, its namesake announced":  {without("func Open(name string, with ...*Handle) (*Handle, error) { return nil, nil }\n"), "* [API change] `IA.Open` is gone.\n", []string{"func Open"}},
		"an interface, the method announced":  {strings.Replace(released, "Close() error\n", "Close() error\n\tRecv()\n", 1), "* [API change] `Link.Recv` has to be.\n", nil},
		"a type of a package that is private": {"import \"example.com/m/q\"\n\n" + strings.Replace(released, "import \"time\"", "import \"time\"\n\nvar Q q.T", 1), "", []string{"q, which is not public"}},
	} {
		dir := module(t, tt.source, tt.changes)
		if err := os.MkdirAll(filepath.Join(dir, "api"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"v0.9.0.txt", "v0.10.0.txt"} { // only the newest version counts
			content := text
			if file == "v0.9.0.txt" {
				content = []byte("pkg p, func Gone()\n")
			}
			if err := os.WriteFile(filepath.Join(dir, "api", file), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := run(dir, "", []string{"p"})
		if (err != nil) != (tt.broken != nil) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, want := range tt.broken {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in %v", what, want, err)
			}
		}
		if err != nil && strings.Count(err.Error(), "\n") > len(tt.broken) {
			t.Errorf("%s: more than %q: %v", what, tt.broken, err)
		}
	}
}

//go:build !race

package checks

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestProfile checks that the functions in the profile for profile-guided optimisation exist. The compiler silently
// ignores functions that it does not find.
func TestProfile(t *testing.T) {
	out, err := exec.Command("go", "tool", "pprof", "-top", "-nodefraction=0.01", filepath.Join(root, "cmd/datbench/default.pgo")).Output()
	if err != nil {
		t.Fatalf("go tool pprof: %v", err)
	}
	functions := regexp.MustCompile(`github\.com/datxdp/datxdp/([\w/]+)\.(?:\(\*(\w+)\)\.)?(\w+)`).FindAllStringSubmatch(string(out), -1)
	if len(functions) < 40 {
		t.Fatalf("%d functions of the module take 1 %% or more; a profile of the engine has more", len(functions))
	}
	sources := map[string]string{} // source text by package
	for _, f := range functions {
		dir, receiver, name := f[1], f[2], f[3]
		decl := "(func|type) " + name // a type may be declared too
		if receiver != "" {
			decl = `func \(\w* ?\*` + receiver + `\) ` + name
		}
		if sources[dir] == "" {
			sources[dir] = source(t, dir)
		}
		if !regexp.MustCompile("(?m)^" + decl + `\b`).MatchString(sources[dir]) {
			t.Errorf("there is no %s; run make profile", strings.TrimPrefix(f[0], "github.com/datxdp/datxdp/"))
		}
	}
}

// source returns the text of all Go files of a directory.
func source(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

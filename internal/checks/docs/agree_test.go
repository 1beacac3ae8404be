package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metricsPort is the port of the metrics in every document, example and dashboard.
const metricsPort = "9404"

// address matches an address of this host with a port in the range of Prometheus exporters.
var address = regexp.MustCompile(`127\.0\.0\.1:(9[1-9][0-9]{2})\b`)

// TestMetricsPort: all documents use the same port for the metrics.
func TestMetricsPort(t *testing.T) {
	seen := map[string]bool{}
	eachText(t, root, []string{".md", ".go", ".yml", ".json", ".service"}, func(name, text string) {
		for _, m := range address.FindAllStringSubmatch(text, -1) {
			seen[strings.Split(strings.TrimPrefix(name, root+"/"), "/")[0]] = true
			if m[1] != metricsPort {
				t.Errorf("%s has metrics on port %s, others on %s", name, m[1], metricsPort)
			}
		}
	})
	if !seen["monitoring"] || !seen["cmd"] || !seen["dat"] {
		t.Errorf("the port was found in %v only", seen)
	}
}

// flag matches a flag of datbench in a text: two dashes and a word.
var flag = regexp.MustCompile("\"[^\"]*(^|[ (])--[a-z]+[^\"]*\"")

// TestLibraryOptions: errors of packages that other programs use name an option, not a flag of datbench.
func TestLibraryOptions(t *testing.T) {
	n := 0
	for _, dir := range []string{"dat", "link", "udplink", "wire", "xdp", "bpf", "internal/route"} {
		eachText(t, root+"/"+dir, []string{".go"}, func(name, text string) {
			if n++; strings.HasSuffix(name, "_test.go") {
				return
			}
			for line := range strings.Lines(text) {
				if m := flag.FindString(line); m != "" && !strings.HasPrefix(strings.TrimSpace(line), "//") {
					t.Errorf("%s: %s", name, m)
				}
			}
		})
	}
	if n < 100 {
		t.Errorf("%d files only", n)
	}
}

// eachText calls f for each file below a directory that has one of the endings.
func eachText(t *testing.T, root string, endings []string, f func(name, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "bin" || e.Name() == "node_modules"):
			return filepath.SkipDir
		case e.IsDir() || !slices.Contains(endings, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil {
			f(name, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

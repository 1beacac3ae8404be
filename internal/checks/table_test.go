//go:build !race

package checks

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/datxdp/datxdp"
)

// short maps the names of the table in docs/ARCHITECTURE.md to modules.
var short = map[string]string{
	"cilium/ebpf":       "github.com/cilium/ebpf",
	"netlink":           "github.com/vishvananda/netlink",
	"netns":             "github.com/vishvananda/netns",
	"x/sys":             "golang.org/x/sys",
	"x/perf":            "golang.org/x/perf",
	"gonum/plot":        "gonum.org/v1/plot",
	"gopacket":          "github.com/gopacket/gopacket",
	"client_golang":     "github.com/prometheus/client_golang",
	"prometheus/common": "github.com/prometheus/common",
	"cobra":             "github.com/spf13/cobra",
	"pflag":             "github.com/spf13/pflag",
	"hdrhistogram-go":   "github.com/HdrHistogram/hdrhistogram-go",
	"progressbar":       "github.com/schollz/progressbar/v3",
	"go-pretty":         "github.com/jedib0t/go-pretty/v6",
	"asavie/xdp":        "github.com/asavie/xdp",
	"noise":             "github.com/flynn/noise",
	"yaml":              "go.yaml.in/yaml/v3",
	"x/net":             "golang.org/x/net",
	"ethtool":           "github.com/safchain/ethtool",
	"procfs":            "github.com/prometheus/procfs",
	"quic-go":           "github.com/quic-go/quic-go",
	"grpc":              "google.golang.org/grpc",
	"protobuf":          "google.golang.org/protobuf",
	"go-redis":          "github.com/redis/go-redis/v9",
	"redcon":            "github.com/tidwall/redcon",
	"nats.go":           "github.com/nats-io/nats.go",
	"nats-server":       "github.com/nats-io/nats-server/v2",
	"raft":              "github.com/hashicorp/raft",
	"raft-boltdb":       "github.com/hashicorp/raft-boltdb/v2",
	"hclog":             "github.com/hashicorp/go-hclog",
	"porcupine":         "github.com/anishathalye/porcupine",
	"x/crypto":          "golang.org/x/crypto",
	"smux":              "github.com/xtaci/smux",
	"yamux":             "github.com/hashicorp/yamux",
	"go-cmp":            "github.com/google/go-cmp",
	"goleak":            "go.uber.org/goleak",
	"rapid":             "pgregory.net/rapid",
	"wire/internal/*":   module + "/wire/internal/*",
	"their own package": "",
}

// table is the import table. rows maps a package directory or a file to the packages that it may import. tests lists
// what every test may import in addition.
type table struct {
	rows  map[string][]string
	tests []string
}

func readTable(t *testing.T) table {
	t.Helper()
	text := readFile(t, "docs/ARCHITECTURE.md")
	_, text, found := strings.Cut(text, "| package | may import |\n|---|---|\n")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md has no import table")
	}
	tab := table{rows: map[string][]string{}}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			break
		}
		for _, row := range strings.Split(cells[1], ",") {
			tab.rows[strings.TrimSpace(row)] = imports(t, cells[2])
		}
	}
	_, tests, found := strings.Cut(text, "Tests may import in addition: ")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md does not say what tests may import")
	}
	tests, _, _ = strings.Cut(tests, ".\n")
	tab.tests = imports(t, tests)
	return tab
}

// imports converts a cell of the table to import paths.
func imports(t *testing.T, cell string) []string {
	t.Helper()
	var paths []string
	for _, name := range strings.Split(strings.TrimSpace(cell), ",") {
		name = strings.TrimSpace(name)
		full, known := short[name]
		switch {
		case name == "nothing" || known && full == "":
		case known:
			paths = append(paths, full)
		default:
			paths = append(paths, module+"/"+name)
		}
	}
	return paths
}

// row returns what a file may import: from the row of the file, of its directory, or of a pattern, in this order.
func (tab table) row(file string) ([]string, bool) {
	dir := path.Dir(file)
	for _, key := range []string{file, dir, path.Dir(dir) + "/*"} {
		if r, ok := tab.rows[key]; ok {
			return r, true
		}
	}
	return nil, false
}

// allows reports whether a file may import a package.
func (tab table) allows(file, imp string) bool {
	allowed, _ := tab.row(file)
	if strings.HasSuffix(file, "_test.go") {
		allowed = slices.Concat(allowed, tab.tests, []string{module + "/" + path.Dir(file)})
	}
	return slices.ContainsFunc(allowed, func(a string) bool {
		if strings.HasPrefix(a, module) {
			match, _ := path.Match(a, imp)
			return match
		}
		return imp == a || strings.HasPrefix(imp, a+"/")
	})
}

// packages returns the import paths of the table, ours and those of other modules.
func (tab table) packages() []string {
	set := map[string]bool{}
	for _, r := range tab.rows {
		for _, p := range r {
			set[p] = true
		}
	}
	for _, p := range tab.tests {
		set[p] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(root + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

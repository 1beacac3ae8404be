//go:build !race

package checks

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const security = "docs/SECURITY.md"

// securityRows returns the cells of the rows below a header line in docs/SECURITY.md.
func securityRows(t *testing.T, header string) (rows [][]string) {
	t.Helper()
	_, text, found := strings.Cut(readFile(t, security), header+"\n")
	if !found {
		t.Fatalf("%s has no table %q", security, header)
	}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 3 {
			break
		}
		cells = cells[1 : len(cells)-1]
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows[1:] // without the line below the header
}

// testFunctions returns the tests and fuzz targets in a package's directory.
func testFunctions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
				all[fn.Name.Name] = true
			}
		}
	}
	return all
}

var (
	provenBy     = regexp.MustCompile("`([a-z/]+)\\.([A-Za-z0-9_]+)`")
	attackNumber = regexp.MustCompile(`^TestAttack(\d\d)(?:And(\d\d))?`)
)

// TestSecurityAttacks checks the table of attacks in docs/SECURITY.md. Each attack must name existing tests, unless it
// needs secure mode. Each test whose name has an attack's number must be in the row of that attack.
func TestSecurityAttacks(t *testing.T) {
	const least = 26
	rows := securityRows(t, "| | attack | outcome | proved by | secure |")
	if len(rows) < least {
		t.Fatalf("%d attacks, want %d at least", len(rows), least)
	}
	packages := map[string]map[string]bool{}
	named := make([][]string, len(rows)+1)
	for i, row := range rows {
		if len(row) != 5 || row[0] != fmt.Sprint(i+1) || row[1] == "" || row[2] == "" {
			t.Fatalf("row %d is %q", i+1, row)
		}
		tests := provenBy.FindAllStringSubmatch(row[3], -1)
		if len(tests) == 0 && row[4] != "yes" {
			t.Errorf("attack %d has no test and does not wait for secure mode", i+1)
		}
		for _, m := range tests {
			if packages[m[1]] == nil {
				packages[m[1]] = testFunctions(t, m[1])
			}
			if !packages[m[1]][m[2]] {
				t.Errorf("attack %d: there is no test %s in package %s", i+1, m[2], m[1])
			}
			named[i+1] = append(named[i+1], m[2])
		}
	}
	for _, m := range provenBy.FindAllStringSubmatch(readFile(t, security), -1) {
		if packages[m[1]] == nil {
			packages[m[1]] = testFunctions(t, m[1])
		}
		if strings.HasPrefix(m[2], "Test") && !packages[m[1]][m[2]] {
			t.Errorf("there is no test %s in package %s", m[2], m[1])
		}
	}
	for name := range packages["wire"] {
		m := attackNumber.FindStringSubmatch(name)
		for _, n := range m[min(1, len(m)):] {
			var i int
			if _, err := fmt.Sscan(strings.TrimLeft(n, "0"), &i); err == nil && (i >= len(named) || !slices.Contains(named[i], name)) {
				t.Errorf("%s does not name wire.%s beside attack %d", security, name, i)
			}
		}
	}
}

// secureHelpers are what tests in secure mode use.
var secureHelpers = regexp.MustCompile(`^(eachMode|eachModeInFull|eachFamine|eachForm|newMITM|newSecureSiege|newSecureWorld|usual|frequent)$`)

// secureTests returns the tests in a package's directory that run in secure mode.
func secureTests(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	secure := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				fn, isFunc := d.(*ast.FuncDecl)
				if id, ok := n.(*ast.Ident); ok && isFunc && secureHelpers.MatchString(id.Name) {
					secure[fn.Name.Name] = true
				}
				return true
			})
		}
	}
	return secure
}

// TestSecurityAttacksInSecureMode checks that each attack on the protocol has a test in secure mode.
func TestSecurityAttacksInSecureMode(t *testing.T) {
	outside := []string{"24", "25", "28", "29", "30", "32"}
	secure := secureTests(t, "wire")
	for _, row := range securityRows(t, "| | attack | outcome | proved by | secure |") {
		tests := provenBy.FindAllStringSubmatch(row[3], -1)
		if !slices.Contains(outside, row[0]) && !slices.ContainsFunc(tests, func(m []string) bool { return m[1] == "wire" && secure[m[2]] }) {
			t.Errorf("attack %s has no test in secure mode", row[0])
		}
	}
}

// TestSecurityBounds checks the limits of links and of the API in docs/SECURITY.md against the source lines that the
// table quotes.
func TestSecurityBounds(t *testing.T) {
	for _, row := range securityRows(t, "| what | bound | in the source |") {
		file, quote, found := strings.Cut(row[2], ": ")
		quote = plain(strings.Trim(quote, "`"))
		if !found || !strings.Contains(plain(readFile(t, file)), quote) {
			t.Errorf("%s: %s does not have %q", row[0], file, quote)
			continue
		}
		if want := boundsOf[quote]; row[1] != want {
			t.Errorf("%s: %q, but %q means %q", row[0], row[1], quote, want)
		}
	}
}

// boundsOf maps a source line to the limit that it sets.
var boundsOf = map[string]string{
	"return o.Frames / 4":                    "a quarter of the frames",
	"RxFrames: o.Frames / 2":                 "half of the frames",
	"resolvePause = 100 * time.Millisecond":  "10 a second",
	"resolveBurst = 32":                      "32",
	"resolveMemory = 2 * time.Minute":        "2 min",
	"lookupShare = 50":                       "1/50, after a quiet time 0.2 s at once",
	"g.limit, g.held = size/4, 0":            "a quarter of the send buffer",
	"patience = time.Second":                 "1 s",
	"unconnectedShare = 4":                   "a quarter of the tx ring",
	"trickle = 100 * time.Millisecond":       "10 a second",
	"probeBatch = 8":                         "8 in 1 ms",
	"backlogShare = 7":                       "7 times as many as are free; at most 14 of 16",
	"backlogPrefix = 15":                     "15 times as many as are free; at most 15 of 16",
	"sampleBurst = 100":                      "100 a second",
	"maxQueuedRecords = 128":                 "128",
	"maxConns = 64":                          "64",
	"scrapeInterval = time.Second":           "one at a time, one a second",
	"statsInterval = time.Second":            "one a second",
	"walkInterval = time.Second":             "one at a time, one a second",
	"inspectTime = 100 * time.Microsecond":   "0.1 ms",
	"maxMemory = 256 << 20":                  "256 MiB",
	"memoryShare = 4":                        "1/4 of what is free; at most 51 MiB",
	"memoryNetwork = 2":                      "1/2 of what is free; at most 85 MiB",
	"maxOrphans = 4096":                      "4096; of one address 819, of one network 1365",
	"orphanTime = 2 * time.Minute":           "2 min",
	"unreadTime = 5 * time.Second":           "5 s",
	"hurryInterval = 100 * time.Millisecond": "10 a second",
}

// plain replaces all white space in a text by single spaces.
func plain(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestSecurityIsFound: the documents for users and for contributors link to docs/SECURITY.md.
func TestSecurityIsFound(t *testing.T) {
	for _, doc := range []string{"README.md", "CONTRIBUTING.md"} {
		if !strings.Contains(readFile(t, doc), "("+security+")") {
			t.Errorf("%s has no link to %s", doc, security)
		}
	}
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// skipped is one test that did not run, and why.
type skipped struct{ Test, Reason string }

// slow is a test and the seconds that it took.
type slow struct {
	Test    string
	Seconds float64
}

// slowest is from how many seconds on a test is remembered.
const slowest = 2

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// filter turns the events of go test -json into what a reader wants: the closing line of every
// package, everything a failing test said, and nothing else.
type filter struct {
	w     io.Writer
	show  *regexp.Regexp
	shown []string
	skips []skipped
	slow  []slow

	said map[string]map[string][]string // package → test → lines; "" is the package itself
}

func (f *filter) read(r io.Reader) {
	f.said = map[string]map[string][]string{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			f.event(e)
		} else if line != "" {
			fmt.Fprint(f.w, line)
		}
		if err != nil {
			return
		}
	}
}

func (f *filter) event(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(f.w, e.Output)
	case "output":
		f.output(e)
	case "pass":
		if e.Elapsed >= slowest && e.Test != "" && !strings.Contains(e.Test, "/") {
			f.slow = append(f.slow, slow{shorten(e.Package) + "." + e.Test, e.Elapsed})
		}
		delete(f.said[e.Package], e.Test)
	case "skip":
		if e.Test != "" {
			f.skips = append(f.skips, skipped{shorten(e.Package) + "." + e.Test, reason(f.said[e.Package][e.Test])})
		}
		delete(f.said[e.Package], e.Test)
	case "fail":
		f.failed(e)
	}
}

func (f *filter) output(e event) {
	if f.show != nil {
		if m := f.show.FindString(e.Output); m != "" {
			f.shown = append(f.shown, m)
		}
	}
	if e.Test == "" && strings.HasPrefix(e.Output, "ok ") {
		fmt.Fprint(f.w, e.Output)
		return
	}
	if f.said[e.Package] == nil {
		f.said[e.Package] = map[string][]string{}
	}
	f.said[e.Package][e.Test] = append(f.said[e.Package][e.Test], e.Output)
}

// failed prints what a failing test said; for a failing package, also what the tests said that
// never ended (a panic, a timeout).
func (f *filter) failed(e event) {
	tests := f.said[e.Package]
	f.print(tests[e.Test])
	delete(tests, e.Test)
	if e.Test != "" {
		return
	}
	for name, said := range tests {
		fmt.Fprintf(f.w, "did not end: %s\n", name)
		f.print(said)
	}
	delete(f.said, e.Package)
}

func (f *filter) print(lines []string) {
	for _, l := range lines {
		fmt.Fprint(f.w, l)
	}
}

// reason is what a skipped test said, on one line and without go test's own marks.
func reason(lines []string) string {
	var words []string
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "=== ") || strings.HasPrefix(l, "--- SKIP") {
			continue
		}
		words = append(words, fileLine.ReplaceAllString(l, ""))
	}
	if len(words) == 0 {
		return "no reason given"
	}
	return strings.Join(words, " ")
}

var fileLine = regexp.MustCompile(`^\S+\.go:\d+: `)

func shorten(pkg string) string { return strings.TrimPrefix(pkg, "github.com/datxdp/datxdp/") }

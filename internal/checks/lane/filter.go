package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// skipped is a test that did not run, and why.
type skipped struct{ Test, Reason string }

// slow is a test and its duration in seconds.
type slow struct {
	Test    string
	Seconds float64
}

// slowest is the duration in seconds from which a test is recorded.
const slowest = 2

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// filter makes the events of go test -json readable. It keeps the last line of each package and the whole output of
// each failed test.
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

// failed prints the output of a failed test. For a failed package it also prints the output of tests that did not end,
// because of a panic or a timeout.
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

// reason returns the output of a skipped test on one line, without the marks of go test.
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

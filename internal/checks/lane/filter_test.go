package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	const input = `{"Action":"run","Package":"p","Test":"TestOK"}
{"Action":"output","Package":"p","Test":"TestOK","Output":"    a_test.go:1: chatter\n"}
{"Action":"pass","Package":"p","Test":"TestOK","Elapsed":2.5}
{"Action":"output","Package":"p","Test":"TestRoot","Output":"=== RUN   TestRoot\n"}
{"Action":"output","Package":"p","Test":"TestRoot","Output":"    a_test.go:2: needs root\n"}
{"Action":"output","Package":"p","Test":"TestRoot","Output":"--- SKIP: TestRoot (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestRoot"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
{"Action":"output","Package":"q","Test":"TestBad","Output":"    b_test.go:3: got 1, want 2\n"}
{"Action":"output","Package":"q","Test":"TestHang","Output":"=== RUN   TestHang\n"}
{"Action":"fail","Package":"q","Test":"TestBad"}
{"Action":"output","Package":"q","Output":"FAIL\tq\t0.1s\n"}
{"Action":"fail","Package":"q"}
{"Action":"output","Package":"r","Test":"TestSim","Output":"    s_test.go:3: 20 seeds, 0 failures\n"}
not JSON
`
	var out strings.Builder
	f := filter{w: &out, show: regexp.MustCompile(`\d+ seeds, \d+ failures`)}
	f.read(strings.NewReader(input))

	want := "ok  \tp\t0.1s\n    b_test.go:3: got 1, want 2\nFAIL\tq\t0.1s\n" +
		"did not end: TestHang\n=== RUN   TestHang\nnot JSON\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	if want := []skipped{{"p.TestRoot", "needs root"}}; !slices.Equal(f.skips, want) {
		t.Errorf("skips = %v, want %v", f.skips, want)
	}
	if want := []slow{{"p.TestOK", 2.5}}; !slices.Equal(f.slow, want) {
		t.Errorf("slow = %v, want %v", f.slow, want)
	}
	if want := []string{"20 seeds, 0 failures"}; !slices.Equal(f.shown, want) {
		t.Errorf("shown = %q, want %q", f.shown, want)
	}
}

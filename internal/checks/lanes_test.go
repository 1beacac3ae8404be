//go:build !race

package checks

import (
	"regexp"
	"strings"
	"testing"
)

// TestLanes: every lane of make test and make test-all is a make target, and CONTRIBUTING.md describes it.
func TestLanes(t *testing.T) {
	makefile, doc := readFile(t, "Makefile"), readFile(t, "CONTRIBUTING.md")
	for _, list := range []string{`(?m)^test: reset deps (.*?) ##`, `(?m)^TOGETHER_LANES := (.*)$`, `(?m)^ALL_LANES := (.*)$`} {
		m := regexp.MustCompile(list).FindStringSubmatch(makefile)
		if m == nil {
			t.Fatalf("the Makefile has no %s", list)
		}
		for _, lane := range strings.Fields(m[1]) {
			if !strings.Contains(makefile, "\n"+lane+":") {
				t.Errorf("there is no make target %s", lane)
			}
			if !regexp.MustCompile("`make " + lane + "[ `]").MatchString(doc) {
				t.Errorf("CONTRIBUTING.md has no row for make %s", lane)
			}
		}
	}
}

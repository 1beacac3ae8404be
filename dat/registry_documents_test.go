package dat

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/ianame"
)

// All documents have the same line of dat.conf for an interface, and every line of dat.conf in a document is valid.
func TestRegistryDocuments(t *testing.T) {
	var first entry
	for _, name := range []string{"../docs/UDAPL.md", "../docs/DAT.md", "../cmd/libdatxdp/dat.conf.in", "../cmd/libdatxdp/libdatxdp.7"} {
		var lines []string
		for line := range strings.Lines(string(must(os.ReadFile(name))(t))) {
			if strings.Contains(line, " u2.0 ") && strings.Contains(line, library) {
				lines = append(lines, strings.ReplaceAll(line, "@LIBDIR@", "/usr/local/lib"))
			}
		}
		entries, err := parseRegistry(strings.Join(lines, ""))
		ok(t, err)
		for _, e := range entries {
			ok(t, e.refuse())
			o := DefaultOptions()
			n, err := ianame.Parse(e.instance)
			if err == nil {
				err = o.override(n)
			}
			if err != nil {
				t.Errorf("%s: %q opens nothing: %v", name, e.instance, err)
			}
		}
		i := slices.IndexFunc(entries, func(e entry) bool { return e.Name == "xdp0" })
		switch {
		case i < 0:
			t.Errorf("%s has no line for xdp0 in %q", name, lines)
		case first.Name == "":
			first = entries[i]
		case entries[i] != first:
			t.Errorf("%s has %+v, the first has %+v", name, entries[i], first)
		}
	}
}

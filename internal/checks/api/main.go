// Command api compares the exported surface of the public packages with the newest api/v*.txt, which a release
// promised. It fails if a promised line was removed or changed and CHANGELOG.md does not name it. The name must be in
// an entry under [API change] in the unreleased part. Additions need no entry.
//
//	go run ./internal/checks/api                         prints the missing entries
//	go run ./internal/checks/api -write api/v0.1.0.txt   writes the surface for a release
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// public lists the packages that other programs may use. They must not export types of other packages of the module,
// because the promise would then cover these too.
var public = []string{"dat", "dat/metrics", "dat/metrics/exporter", "link", "udplink", "xdp"}

const head = "# The exported surface of the public packages, a line for each name. Written by make api; make lint compares.\n"

func main() {
	dir := flag.String("dir", ".", "root of the `module`")
	write := flag.String("write", "", "write the surface to a `file`, and compare nothing")
	flag.Parse()
	if err := run(*dir, *write, public); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir, write string, packages []string) error {
	now, err := surface(dir, packages)
	if err != nil {
		return err
	}
	if write != "" {
		return os.WriteFile(filepath.Join(dir, write), []byte(head+strings.Join(now, "\n")+"\n"), 0o644)
	}
	file, promised, err := newest(filepath.Join(dir, "api"))
	if err != nil {
		return err
	}
	changes, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if broken := unannounced(promised, now, announcements(string(changes))); len(broken) > 0 {
		return fmt.Errorf("%s has promised, and no [API change] in the unreleased part of CHANGELOG.md names:\n\t%s",
			file, strings.Join(broken, "\n\t"))
	}
	return nil
}

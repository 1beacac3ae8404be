// Command api holds the exported surface of the public packages to what a release has promised. It prints what was removed or
// changed since the newest api/v*.txt without a line under [API change] in the unreleased part of CHANGELOG.md that names it,
// and fails then. Additions are free.
//
//	go run ./internal/checks/api                         what is wrong
//	go run ./internal/checks/api -write api/v0.1.0.txt   write the surface of a release down
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// public are the packages that programs may build on. Whatever of another package of the module they show is part of the
// promise too, so that they may show none.
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

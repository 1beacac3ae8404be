package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// host is the environment of a result.
type host struct {
	revision, kernel, goVersion string
	date                        time.Time
	cpus                        int
}

// thisHost describes this host and the revision of the tree. Changes of the files that the lanes write do not count.
//
// It runs git and uname.
func thisHost(written string) host {
	say := func(name string, args ...string) string {
		out, _ := exec.Command(name, args...).Output() // empty if the program is missing
		return strings.TrimSpace(string(out))
	}
	h := host{revision: say("git", "rev-parse", "HEAD"), kernel: say("uname", "-sr"), goVersion: runtime.Version(), date: time.Now().UTC(), cpus: runtime.NumCPU()}
	if say("git", "status", "--porcelain", "--", ".", ":!"+written, ":!docs/DRIVERS.md") != "" {
		h.revision += " and changes that are not committed"
	}
	return h
}

// writeReport writes the journal to a file for the repository. It fails if a lane has failed.
func writeReport(name string) error {
	all, err := entries()
	if err != nil {
		return err
	}
	var text strings.Builder
	printReport(&text, thisHost(name), all)
	if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
		return err
	}
	fmt.Printf("== the result is in %s: commit it\n", name)
	if slices.ContainsFunc(all, func(e entry) bool { return e.Failed }) {
		return errors.New("lanes have failed")
	}
	return nil
}

func printReport(w io.Writer, h host, all []entry) {
	fmt.Fprintf(w, "# What was tested\n\n`make test-all` wrote this; it is not edited.\n\n")
	fmt.Fprintf(w, "Revision %s, %s, on %s with %d CPUs, %s.\n\n", h.revision, h.date.Format("2 January 2006 15:04 UTC"), h.kernel, h.cpus, h.goVersion)
	fmt.Fprintf(w, "| lane | result | seconds | CPU seconds | skipped |\n|---|---|---|---|---|\n")
	for _, e := range all {
		fmt.Fprintf(w, "| %s | %s | %.0f | %.0f | %d |\n", e.Lane, e.result(), e.Seconds, e.CPU, len(e.Skips))
	}
	why, tests := reasons(all)
	if len(why) == 0 {
		fmt.Fprintf(w, "\nNothing was skipped.\n")
		return
	}
	fmt.Fprintf(w, "\nSkipped, and why:\n\n")
	for _, r := range why {
		fmt.Fprintf(w, "* %s (%s)\n", r, strings.Join(tests[r], ", "))
	}
}

func (e *entry) result() string {
	switch {
	case e.Failed:
		return "**failed**"
	case slices.ContainsFunc(e.Skips, func(s skipped) bool { return s.Test == wholeLane }):
		return "skipped"
	default:
		return "passed"
	}
}

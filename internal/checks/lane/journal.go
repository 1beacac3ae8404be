package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// journal holds one JSON line for each lane since the last reset.
const journal = "bin/lanes.json"

// entry is what is remembered of one lane.
type entry struct {
	Lane    string
	Seconds float64
	Skips   []skipped
}

func resetJournal() error {
	if err := os.Remove(journal); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func note(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// printSummary lists the time of every lane and what was skipped, one line a reason.
func printSummary(w io.Writer) error {
	data, err := os.ReadFile(journal)
	if err != nil {
		return err
	}
	var times []string
	var total float64
	tests := map[string][]string{}
	for line := range bytes.Lines(data) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Seconds > 0 {
			times = append(times, fmt.Sprintf("%s %.0f s", e.Lane, e.Seconds))
			total += e.Seconds
		}
		for _, s := range e.Skips {
			tests[s.Reason] = append(tests[s.Reason], e.Lane+": "+s.Test)
		}
	}
	fmt.Fprintf(w, "== all lanes passed in %.0f s: %s\n", total, strings.Join(times, ", "))
	printSkips(w, tests)
	return nil
}

func printSkips(w io.Writer, tests map[string][]string) {
	if len(tests) == 0 {
		fmt.Fprintln(w, "== nothing was skipped")
		return
	}
	var reasons []string
	for r := range tests {
		reasons = append(reasons, r)
	}
	slices.Sort(reasons)
	fmt.Fprintln(w, "== skipped, and why")
	for _, r := range reasons {
		fmt.Fprintf(w, "   %s\n", r)
		for _, t := range tests[r] {
			fmt.Fprintf(w, "      %s\n", t)
		}
	}
}

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// journal is a file with one JSON line per lane since the last reset.
const journal = "bin/lanes.json"

// entry is the record of one lane. Seconds is the elapsed time, CPU the processor time of all its processes.
type entry struct {
	Lane         string
	Start        time.Time
	Seconds, CPU float64
	Failed       bool
	Skips        []skipped
	Slow         []slow
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

// entries returns the entries of the journal, in order.
func entries() (all []entry, err error) {
	data, err := os.ReadFile(journal)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// printSummary prints the time of every lane, the slowest tests, and the skipped tests, one line per reason.
func printSummary(w io.Writer) error {
	all, err := entries()
	if err != nil {
		return err
	}
	var times []string
	for _, e := range all {
		if e.Seconds > 0 {
			times = append(times, fmt.Sprintf("%s %.0f s", e.Lane, e.Seconds))
		}
	}
	fmt.Fprintf(w, "== all lanes passed in %.0f s: %s\n", elapsed(all).Seconds(), strings.Join(times, ", "))
	if slow := slowTests(all, 10); len(slow) > 0 {
		fmt.Fprintf(w, "== the slowest tests: %s\n", strings.Join(slow, ", "))
	}
	printSkips(w, all)
	return nil
}

// elapsed returns the time from the start of the first lane to the end of the last one.
func elapsed(all []entry) time.Duration {
	var first, last time.Time
	for _, e := range all {
		if end := e.Start.Add(time.Duration(e.Seconds * float64(time.Second))); end.After(last) {
			last = end
		}
		if !e.Start.IsZero() && (first.IsZero() || e.Start.Before(first)) {
			first = e.Start
		}
	}
	return last.Sub(first)
}

// slowTests returns the slowest tests of all lanes, at most n.
func slowTests(all []entry, n int) (said []string) {
	var tests []slow
	for _, e := range all {
		tests = append(tests, e.Slow...)
	}
	slices.SortStableFunc(tests, func(a, b slow) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for _, t := range tests[:min(n, len(tests))] {
		said = append(said, fmt.Sprintf("%s %.0f s", t.Test, t.Seconds))
	}
	return said
}

// reasons returns the sorted reasons of skipped tests, and the tests of each.
func reasons(all []entry) (why []string, tests map[string][]string) {
	tests = map[string][]string{}
	for _, e := range all {
		for _, s := range e.Skips {
			if tests[s.Reason] == nil {
				why = append(why, s.Reason)
			}
			tests[s.Reason] = append(tests[s.Reason], e.Lane+": "+s.Test)
		}
	}
	slices.Sort(why)
	return why, tests
}

func printSkips(w io.Writer, all []entry) {
	why, tests := reasons(all)
	if len(why) == 0 {
		fmt.Fprintln(w, "== nothing was skipped")
		return
	}
	fmt.Fprintln(w, "== skipped, and why")
	for _, r := range why {
		fmt.Fprintf(w, "   %s\n", r)
		for _, t := range tests[r] {
			fmt.Fprintf(w, "      %s\n", t)
		}
	}
}

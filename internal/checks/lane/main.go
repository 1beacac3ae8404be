// Command lane runs one lane of make test. It prints what it runs and how long this took, hides the output of passed
// tests, and records slow tests and each skipped test with its reason.
//
//	lane [-test] [-show REGEXP] NAME COMMAND ARG...   runs a lane; -test: the command is "go test -json"
//	lane -skip REASON NAME                            records a lane that this host cannot run
//	lane -failed NAME                                 records a failed lane, even if its command did not run
//	lane -summary                                     prints times, slow tests and skips of all lanes since -reset
//	lane -report FILE                                 writes the summary and the revision to FILE; fails if a lane failed
//	lane -reset                                       deletes the records
//
// A command that ends with exit status 77 cannot run on this host; its last line on standard error is the reason.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

func main() {
	isTest := flag.Bool("test", false, "the command is go test -json")
	show := flag.String("show", "", "repeat output lines that match at the very end")
	skip := flag.String("skip", "", "record that the lane cannot run here, and why")
	failed := flag.Bool("failed", false, "record that the lane failed")
	report := flag.String("report", "", "write what the journal holds to a file")
	summary := flag.Bool("summary", false, "print what the journal holds")
	reset := flag.Bool("reset", false, "empty the journal")
	flag.Parse()

	var err error
	switch {
	case *reset:
		err = resetJournal()
	case *summary:
		err = printSummary(os.Stdout)
	case *report != "":
		err = writeReport(*report)
	case *failed:
		err = note(entry{Lane: flag.Arg(0), Failed: true})
	case *skip != "":
		fmt.Printf("== %s: skipped: %s\n", flag.Arg(0), *skip)
		err = note(entry{Lane: flag.Arg(0), Skips: []skipped{{Test: wholeLane, Reason: *skip}}})
	case flag.NArg() < 2:
		flag.Usage()
		os.Exit(2)
	default:
		err = run(flag.Arg(0), flag.Args()[1:], *isTest, *show)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lane:", err)
		os.Exit(1)
	}
}

// run runs one lane. It prints the closing line before the lines that -show selects.
func run(name string, command []string, isTest bool, show string) error {
	fmt.Printf("== %s\n", name)
	start := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	var last lastLine
	cmd.Stderr = io.MultiWriter(os.Stderr, &last)
	f := filter{w: os.Stdout}
	if show != "" {
		f.show = regexp.MustCompile(show)
	}
	err := execute(cmd, isTest, &f)
	e := entry{Lane: name, Start: start, Seconds: time.Since(start).Seconds(), Skips: f.skips, Slow: f.slow}
	if cmd.ProcessState != nil {
		e.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		if cmd.ProcessState.ExitCode() == cannotRun {
			e.Skips, err = append(e.Skips, skipped{wholeLane, last.String()}), nil
		}
	}
	fmt.Printf("== %s: %s\n", name, e.closing(err))
	for _, line := range f.shown {
		fmt.Println(line)
	}
	if err == nil && show != "" && len(f.shown) == 0 {
		err = fmt.Errorf("nothing in the output matched %q", show)
	}
	if err != nil {
		e.Failed, err = true, fmt.Errorf("%s: %w", name, err)
	}
	return errors.Join(err, note(e))
}

// wholeLane stands for all tests of a lane.
const wholeLane = "the whole lane"

// cannotRun is the exit status of a command that this host cannot run, as in automake.
const cannotRun = 77

// lastLine keeps the last line that was written to it.
type lastLine struct{ text []byte }

func (l *lastLine) Write(b []byte) (int, error) {
	l.text = append(l.text, b...)
	if i := bytes.LastIndexByte(bytes.TrimSuffix(l.text, []byte("\n")), '\n'); i >= 0 {
		l.text = append(l.text[:0], l.text[i+1:]...)
	}
	return len(b), nil
}

func (l *lastLine) String() string { return strings.TrimSpace(string(l.text)) }

func execute(cmd *exec.Cmd, isTest bool, f *filter) error {
	if !isTest {
		cmd.Stdout = os.Stdout
		return cmd.Run()
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.read(out)
	return cmd.Wait()
}

// closing returns the closing line of a lane.
func (e *entry) closing(err error) string {
	if err != nil {
		return fmt.Sprintf("FAILED after %.1f s", e.Seconds)
	}
	s := fmt.Sprintf("%.1f s, %.0f s of CPU time", e.Seconds, e.CPU)
	if n := len(e.Skips); n > 0 {
		s += fmt.Sprintf(", %d skipped", n)
	}
	return s
}

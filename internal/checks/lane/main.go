// Command lane runs one lane of make test: it says what it runs and how long that took, keeps the
// output of tests that pass to itself, and remembers every skipped test with its reason.
//
//	lane [-test] [-show REGEXP] NAME COMMAND ARG...   run a lane; -test: the command is "go test -json"
//	lane -skip REASON NAME                            a lane this host cannot run
//	lane -summary                                     times and skips of all lanes since -reset
//	lane -reset                                       forget them
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"time"
)

func main() {
	isTest := flag.Bool("test", false, "the command is go test -json")
	show := flag.String("show", "", "repeat output lines that match at the very end")
	skip := flag.String("skip", "", "record that the lane cannot run here, and why")
	summary := flag.Bool("summary", false, "print what the journal holds")
	reset := flag.Bool("reset", false, "empty the journal")
	flag.Parse()

	var err error
	switch {
	case *reset:
		err = resetJournal()
	case *summary:
		err = printSummary(os.Stdout)
	case *skip != "":
		fmt.Printf("== %s: skipped: %s\n", flag.Arg(0), *skip)
		err = note(entry{Lane: flag.Arg(0), Skips: []skipped{{Test: "the whole lane", Reason: *skip}}})
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

// run runs one lane. Its closing line comes before the lines that -show asked for.
func run(name string, command []string, isTest bool, show string) error {
	fmt.Printf("== %s\n", name)
	start := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	f := filter{w: os.Stdout}
	if show != "" {
		f.show = regexp.MustCompile(show)
	}
	err := execute(cmd, isTest, &f)
	took := time.Since(start).Seconds()
	end := fmt.Sprintf("%.1f s%s", took, skipCount(f.skips))
	if err != nil {
		end = fmt.Sprintf("FAILED after %.1f s", took)
	}
	fmt.Printf("== %s: %s\n", name, end)
	for _, line := range f.shown {
		fmt.Println(line)
	}
	if err == nil && show != "" && len(f.shown) == 0 {
		err = fmt.Errorf("nothing in the output matched %q", show)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return note(entry{Lane: name, Seconds: took, Skips: f.skips})
}

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

func skipCount(s []skipped) string {
	if len(s) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d skipped", len(s))
}

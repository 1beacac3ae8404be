// Command measure prints rows of package network, and what of its targets they meet.
//
//	go run ./internal/network/measure [-seeds 3] [-first 1] [-targets] [-write docs/NETWORK.md] [pattern]
//
// The pattern is a regular expression for the names of rows; without it all rows are measured. -targets leaves out the
// rows that belong to no target.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/datxdp/datxdp/internal/network"
)

func main() {
	seeds := flag.Int("seeds", 1, "number of seeds; the figures are medians")
	first := flag.Uint64("first", 1, "first seed")
	targets := flag.Bool("targets", false, "only rows of targets")
	file := flag.String("write", "", "write a page to this file")
	flag.Parse()
	if err := run(flag.Arg(0), *first, *seeds, *targets, *file); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(pattern string, first uint64, seeds int, targets bool, file string) error {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	all := network.Cases()
	if targets {
		all = network.TargetCases()
	}
	var cases []network.Case
	for _, c := range all {
		if wanted.MatchString(c.Name) {
			cases = append(cases, c)
		}
	}
	start := time.Now()
	var rows []network.Row
	network.Measure(cases, first, max(seeds, 1), func(r network.Row) {
		fmt.Println(r)
		rows = append(rows, r)
	})
	fmt.Println()
	for _, r := range network.Judge(rows) {
		fmt.Println(r)
	}
	fmt.Printf("\n%d rows, %d seeds, %.0f s\n", len(rows), seeds, time.Since(start).Seconds())
	return write(file, rows, seeds)
}

// write writes the page, unless file is empty.
func write(file string, rows []network.Row, seeds int) error {
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := network.WritePage(f, rows, seeds); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

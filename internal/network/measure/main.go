// Command measure prints rows of package network.
//
//	go run ./internal/network/measure [-seeds 3] [-first 1] [pattern]
//
// The pattern is a regular expression; without it all rows are measured.
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
	flag.Parse()
	pattern, err := regexp.Compile(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var chosen []network.Case
	for _, c := range network.Cases() {
		if pattern.MatchString(c.Name) {
			chosen = append(chosen, c)
		}
	}
	start := time.Now()
	network.Measure(chosen, *first, *seeds, func(r network.Row) { fmt.Println(r) })
	fmt.Printf("%d rows, %d seeds, %.1f s\n", len(chosen), *seeds, time.Since(start).Seconds())
}

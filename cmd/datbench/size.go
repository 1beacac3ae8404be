package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// sizeList is a flag value: a comma list of byte sizes such as 64,4KiB,1MiB.
type sizeList []int64

func (l *sizeList) String() string {
	var parts []string
	for _, n := range *l {
		parts = append(parts, formatSize(n))
	}
	return strings.Join(parts, ",")
}

func (l *sizeList) Set(s string) error {
	*l = (*l)[:0]
	for part := range strings.SplitSeq(s, ",") {
		n, err := parseSize(part)
		if err != nil {
			return err
		}
		*l = append(*l, n)
	}
	return nil
}

func (*sizeList) Type() string { return "size" }

var sizeUnits = []struct {
	name  string
	shift uint
}{
	{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"G", 30}, {"M", 20}, {"K", 10}, {"B", 0}, {"", 0},
}

// parseSize reads a positive number of bytes with an optional binary unit.
func parseSize(s string) (int64, error) {
	s = strings.TrimSpace(s)
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64>>u.shift {
			break
		}
		return n << u.shift, nil
	}
	return 0, fmt.Errorf("%q is not a size; write it as 64, 4KiB or 1MiB", s)
}

// formatSize is the shortest exact form: 1 MiB, 64 B, 1514 B.
func formatSize(n int64) string {
	for _, u := range sizeUnits[:3] {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

var errEmptyList = errors.New("empty list")

// someOf is oneOf for a list that may be empty.
func someOf(flag string, list, allowed []string) error {
	if len(list) == 0 {
		return nil
	}
	return oneOf(flag, list, allowed)
}

// oneOf checks every element of a comma list against the words allowed.
func oneOf(flag string, list, allowed []string) error {
	if len(list) == 0 {
		return fmt.Errorf("--%s: %w", flag, errEmptyList)
	}
	for _, word := range list {
		if !slices.Contains(allowed, word) {
			return fmt.Errorf("--%s: %q is not one of %s", flag, word, strings.Join(allowed, ", "))
		}
	}
	return nil
}

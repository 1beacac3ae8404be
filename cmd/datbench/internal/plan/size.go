package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// ByteSize is a flag value: one size in bytes.
type ByteSize int64

func (b *ByteSize) String() string {
	if *b == 0 {
		return ""
	}
	return result.FormatSize(int64(*b))
}
func (*ByteSize) Type() string { return "size" }

func (b *ByteSize) Set(s string) error {
	n, err := parseSize(s)
	if err == nil {
		*b = ByteSize(n)
	}
	return err
}

// SizeList is a flag value: a comma-separated list of sizes and ranges, such as 64,4K-1M,1000-2000+250. In a range
// without a suffix, each size is twice the previous size. With the suffix *FACTOR each size is FACTOR times the
// previous size. With the suffix +STEP each size is larger by STEP than the previous size. The end of a range is always
// included.
type SizeList []int64

func (l *SizeList) String() string {
	var parts []string
	for _, n := range *l {
		parts = append(parts, result.FormatSize(n))
	}
	return strings.Join(parts, ",")
}

func (*SizeList) Type() string { return "sizes" }

func (l *SizeList) Set(s string) error {
	*l = (*l)[:0]
	for part := range strings.SplitSeq(s, ",") {
		sizes, err := parseSizes(part)
		if err != nil {
			return err
		}
		*l = append(*l, sizes...)
	}
	if len(*l) > maxSizes {
		return fmt.Errorf("%q is %d sizes, more than %d", s, len(*l), maxSizes)
	}
	return nil
}

// maxSizes limits a list, because a range with a small step could be very long.
const maxSizes = 1000

// parseSizes parses one size or one range.
func parseSizes(s string) ([]int64, error) {
	first, rest, isRange := strings.Cut(s, "-")
	if !isRange {
		first, rest, isRange = strings.Cut(s, "..")
	}
	from, err := parseSize(first)
	if err != nil || !isRange {
		return []int64{from}, err
	}
	next := func(n int64) int64 { return 2 * n }
	if last, factor, found := strings.Cut(rest, "*"); found {
		f, err := strconv.ParseInt(factor, 10, 32)
		if err != nil || f < 2 {
			return nil, fmt.Errorf("%q: the factor of a range is a whole number from 2, as in 64-1M*4", s)
		}
		rest, next = last, func(n int64) int64 { return n * f }
	} else if last, step, found := strings.Cut(rest, "+"); found {
		d, err := parseSize(step)
		if err != nil {
			return nil, err
		}
		rest, next = last, func(n int64) int64 { return n + d }
	}
	to, err := parseSize(rest)
	if err == nil && to < from {
		err = fmt.Errorf("%q ends before it begins", s)
	}
	return sizeRange(from, to, next), err
}

// sizeRange returns the sizes from low to high. nextSize returns the size that follows its argument. The range always
// ends with high.
func sizeRange(low, high int64, nextSize func(int64) int64) (out []int64) {
	for n := low; n < high && n > 0 && len(out) <= maxSizes; n = nextSize(n) {
		out = append(out, n)
	}
	return append(out, high)
}

var sizeUnits = []struct {
	name  string
	shift uint
}{
	{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"G", 30}, {"M", 20}, {"K", 10}, {"B", 0}, {"", 0},
}

// parseSize parses a positive number of bytes with an optional binary unit.
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

var errEmptyList = errors.New("empty list")

// someOf is OneOf for a list that may be empty.
func someOf(flag string, list, allowed []string) error {
	if len(list) == 0 {
		return nil
	}
	return OneOf(flag, list, allowed)
}

// OneOf checks that every element of a comma list is an allowed word.
func OneOf(flag string, list, allowed []string) error {
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

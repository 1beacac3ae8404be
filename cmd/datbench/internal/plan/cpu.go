package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// CPUList is a flag value: a list of CPU numbers, such as 0,4-7.
type CPUList []int

func (l *CPUList) String() string {
	var parts []string
	for _, n := range *l {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ",")
}

func (*CPUList) Type() string { return "CPUs" }

// MaxCPU is the highest CPU number that the kernel's CPU mask holds.
const MaxCPU = 1023

func (l *CPUList) Set(s string) error {
	*l = (*l)[:0]
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || to < from || to > MaxCPU {
			return fmt.Errorf("%q is not a list of CPUs; write it as 2 or 0,4-7", s)
		}
		for n := from; n <= to; n++ {
			*l = append(*l, n)
		}
	}
	return nil
}

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// cpuList is a flag value: CPUs by their numbers, such as 0,4-7.
type cpuList []int

func (l *cpuList) String() string {
	var parts []string
	for _, n := range *l {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ",")
}

func (*cpuList) Type() string { return "CPUs" }

// maxCPU bounds the numbers, as the kernel's mask does.
const maxCPU = 1023

func (l *cpuList) Set(s string) error {
	*l = (*l)[:0]
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || to < from || to > maxCPU {
			return fmt.Errorf("%q is not a list of CPUs; write it as 2 or 0,4-7", s)
		}
		for n := from; n <= to; n++ {
			*l = append(*l, n)
		}
	}
	return nil
}

package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/stat (USER_HZ), which is 1/100 s on all platforms of Go.
const tick = 10 * time.Millisecond

// userTime returns the CPU time of all programs of this host in user mode, or 0 if it is not available.
func userTime() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // cpu user nice system idle …
	if len(fields) < 3 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[1], 10, 64) // always a number
	nice, _ := strconv.ParseInt(fields[2], 10, 64)
	return time.Duration(user+nice) * tick
}

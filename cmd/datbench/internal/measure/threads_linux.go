package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tasks has a directory for each thread of this process (proc(5)).
const tasks = "/proc/self/task"

// threadStats returns the counts of each thread. Without /proc, and on kernels without CONFIG_SCHED_INFO, it returns
// none.
func threadStats() map[string]threadStat {
	all := map[string]threadStat{}
	entries, _ := os.ReadDir(tasks) // empty on an error
	for _, e := range entries {
		if s, ok := statOf(tasks + "/" + e.Name()); ok {
			all[e.Name()] = s
		}
	}
	return all
}

// statOf reads the counts of one thread. ok is false if the thread has just ended.
func statOf(dir string) (s threadStat, ok bool) {
	schedstat, err := os.ReadFile(dir + "/schedstat")
	if err != nil {
		return s, false
	}
	var run time.Duration
	if _, err := fmt.Sscan(string(schedstat), &run, &s.runDelay); err != nil {
		return s, false
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return s, false
	}
	_, after, _ := bytes.Cut(status, []byte("\nnonvoluntary_ctxt_switches:"))
	count, _, _ := bytes.Cut(after, []byte("\n"))
	s.involuntary, err = strconv.ParseInt(string(bytes.TrimSpace(count)), 10, 64)
	return s, err == nil
}

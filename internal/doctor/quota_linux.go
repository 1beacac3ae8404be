package doctor

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// share is a number of processors; 0.5 is half of the time of one.
type share float64

// cpuQuota returns the processors that the control groups of this process allow it (cgroups(7)), and whether they limit
// it at all. Files are read below root.
func cpuQuota(root fs.FS) (least share, limited bool) {
	for line := range strings.Lines(readFile(root, "proc/self/cgroup")) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, group
		if len(fields) < 3 || fields[1] != "" && !strings.Contains(","+fields[1]+",", ",cpu,") {
			continue
		}
		for _, top := range []string{"sys/fs/cgroup", "sys/fs/cgroup/" + fields[1], "sys/fs/cgroup/cpu", "sys/fs/cgroup/unified"} {
			for group := fields[2]; ; group = path.Dir(group) {
				if q, ok := quotaOf(root, path.Join(top, group)); ok && (!limited || q < least) {
					least, limited = q, true
				}
				if group == "/" || group == "." {
					break
				}
			}
		}
	}
	return least, limited
}

// quotaOf returns the share of one control group, of version 2 or 1.
func quotaOf(root fs.FS, dir string) (share, bool) {
	quota, period, _ := strings.Cut(readFile(root, dir+"/cpu.max"), " ")
	if quota == "" {
		quota, period = readFile(root, dir+"/cpu.cfs_quota_us"), readFile(root, dir+"/cpu.cfs_period_us")
	}
	q, err := strconv.ParseFloat(quota, 64) // "max" and -1 are no limit
	p, perr := strconv.ParseFloat(period, 64)
	if err != nil || perr != nil || q <= 0 || p <= 0 {
		return 0, false
	}
	return share(q / p), true
}

func readFile(root fs.FS, name string) string {
	b, _ := fs.ReadFile(root, name) // empty if the file does not exist
	return strings.TrimSpace(string(b))
}

// quotaFinding warns of a share in which a side that polls is stopped.
func quotaFinding(q share) []Finding {
	return warning(fmt.Sprintf("a control group limits this process to %.3g processors", float64(q)),
		"A side that polls uses up its share, and is stopped then, mostly for up to 100 ms.",
		"give the process two or more: CPUQuota= of a unit, --cpus of a container, limits.cpu of a pod; or open the adapter with progress=interrupts", "")
}

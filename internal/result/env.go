package result

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// NewEnv describes this host and this command.
func NewEnv(link string) Env {
	return Env{
		Time:       time.Now().UTC().Format(time.RFC3339),
		Command:    strings.Join(append([]string{"datbench"}, os.Args[1:]...), " "),
		Version:    BuildVersion(),
		Go:         runtime.Version(),
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		Kernel:     kernelRelease(),
		CPU:        cpuModel(),
		CPUs:       runtime.NumCPU(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Link:       link,
	}
}

// BuildVersion returns the module's version, and the commit if the build recorded one.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 && !strings.Contains(version, s.Value[:12]) {
			version += " " + s.Value[:12]
		}
	}
	return version
}

func kernelRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return strings.TrimSpace(string(b))
}

func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

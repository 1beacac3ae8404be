package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Env names what the results were measured on.
type Env struct {
	Time       string `json:"time"`
	Command    string `json:"command"`
	Version    string `json:"version"`
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel"`
	CPU        string `json:"cpu"`
	CPUs       int    `json:"cpus"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	// Link says what lay between the two sides.
	Link string `json:"link"`
	// Fallback says why this is not the measurement that was meant; empty if it is.
	Fallback string `json:"fallback"`
	// Pcap is the file that the client's packets were captured to, at some cost; empty for none.
	Pcap string `json:"pcap,omitempty"`
}

func newEnv(link string) Env {
	return Env{
		Time:       time.Now().UTC().Format(time.RFC3339),
		Command:    strings.Join(append([]string{"datbench"}, os.Args[1:]...), " "),
		Version:    buildVersion(),
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

// buildVersion is the module's version, and the commit where the build recorded one.
func buildVersion() string {
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

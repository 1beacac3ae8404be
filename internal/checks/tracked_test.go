//go:build !race

package checks

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// largestFile is the largest size in bytes of a file in the repository. A larger file is probably built, not written.
const largestFile = 256 << 10

// TestNothingBuiltIsTracked: no built program is committed by mistake.
func TestNothingBuiltIsTracked(t *testing.T) {
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		info, err := os.Stat(root + "/" + name)
		if err == nil && info.Size() > largestFile {
			t.Errorf("%s has %d bytes; a file of the repository has at most %d", name, info.Size(), largestFile)
		}
	}
}

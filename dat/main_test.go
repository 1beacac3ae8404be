package dat

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roleVar is an environment variable. If it is set, the test binary runs the named role instead of tests.
const roleVar = "DATXDP_TEST_ROLE"

var roles = map[string]func() error{}

// TestMain runs the tests. After that it fails if adapters, goroutines or open files are left.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := roles[role](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	warmUp()
	before := openFiles()
	code := m.Run()
	for _, err := range []error{closeLab(), leftAdapters(), goleak.Find(), leftFiles(before)} {
		if err != nil {
			fmt.Fprintln(os.Stderr, "left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// warmUp makes the Go runtime open the files that it keeps open.
func warmUp() {
	if c, err := net.ListenUDP("udp", nil); err == nil {
		c.Close()
	}
}

func leftAdapters() error {
	adaptersMu.Lock()
	defer adaptersMu.Unlock()
	if len(adapters) > 0 {
		return fmt.Errorf("%d open adapters", len(adapters))
	}
	return nil
}

// openFiles returns one line for each open file of the process: the number and the name of the file. It returns nil if
// the system does not list open files.
func openFiles() []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries {
		if what, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			files = append(files, e.Name()+" "+what)
		}
	}
	return files
}

// profile reports whether an open file is the file of -cpuprofile, which package testing does not close.
func profile(file string) bool {
	f := flag.Lookup("test.cpuprofile")
	return f != nil && f.Value.String() != "" && strings.HasSuffix(file, "/"+filepath.Base(f.Value.String()))
}

// leftFiles checks that every open file is in an earlier list of open files, which is its argument. It repeats the
// check for up to 2 s, because the kernel closes the files of a killed child late. If other files are still open then,
// it returns an error with their names.
func leftFiles(before []string) error {
	var left []string
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left = left[:0]
		for _, f := range openFiles() {
			if !slices.Contains(before, f) && !profile(f) {
				left = append(left, f)
			}
		}
		if len(left) == 0 {
			return nil
		}
	}
	return fmt.Errorf("open files %q", left)
}

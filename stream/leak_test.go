package stream

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// counts has what a failed call must not leave behind.
type counts struct{ goroutines, files, stacks, frames int }

func count() (c counts) {
	opening.Lock()
	defer opening.Unlock()
	return counts{runtime.NumGoroutine(), len(files()), len(stacks), frames()}
}

// files returns the open files of the process.
func files() (names []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		name, _ := os.Readlink("/proc/self/fd/" + e.Name())
		names = append(names, name)
	}
	return names
}

// settled counts after descriptors that earlier tests have dropped are closed.
func settled() counts {
	runtime.GC()
	return count()
}

// await waits until nothing more is left than there was.
func (c counts) await(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		now := count()
		if now.goroutines <= c.goroutines && now.files <= c.files && now.stacks <= c.stacks && now.frames <= c.frames {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("before %+v, now %+v: %q", c, now, files())
		}
	}
}

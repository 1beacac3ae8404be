package identity

import (
	"os"
	"testing"
	"time"
)

// TestWatch: a change is told once it is older than the last look, and until the files are read.
func TestWatch(t *testing.T) {
	s := open(t, files(t, text(1)+"\n"))
	w := s.Watch()
	expect := func(what string, want ...bool) {
		t.Helper()
		for i, v := range want {
			if got := w.Changed(); got != v {
				t.Errorf("%s, look %d: got %v, want %v", what, i, got, v)
			}
		}
	}
	reload := func() {
		t.Helper()
		if _, err := s.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	stamp := time.Now()
	change := func(name string) { // mtime has the resolution of the kernel's clock tick
		t.Helper()
		stamp = stamp.Add(time.Second)
		if err := os.Chtimes(name, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	expect("no change", false, false)
	change(s.files.Peers)
	expect("the file of peers", false, true, true)
	reload()
	expect("after a reload", false, false)
	change(s.files.Key)
	expect("the key file", false)
	change(s.files.Key)
	expect("another change before the second look", false, true)
	reload()
	if err := os.Rename(write(t, s.files.Peers+".new", text(1)+"\n", 0o600), s.files.Peers); err != nil {
		t.Fatal(err)
	}
	expect("another file of this name", false, true)
	reload()
	if err := os.Remove(s.files.Peers); err != nil {
		t.Fatal(err)
	}
	expect("no file", false, true)
	if _, err := s.Reload(); err == nil {
		t.Error("a file that is gone was read")
	}
	expect("a file that cannot be read", true)
	write(t, s.files.Peers, text(1)+"\n", 0o600)
	if err := os.Chmod(s.files.Peers, 0o640); err != nil {
		t.Fatal(err)
	}
	expect("the mode", false, true)
}

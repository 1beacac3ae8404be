package xdp

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
)

// limitDescriptors leaves only n unused file descriptors to the process until the returned function is called.
func limitDescriptors(t *testing.T, n int) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	small := unix.Rlimit{Cur: 128, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &small); err != nil {
		t.Fatal(err)
	}
	var taken []int
	for {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	release := func(fds []int) {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	if len(taken) < n {
		t.Fatalf("the process has %d unused descriptors, the test needs %d", len(taken), n)
	}
	release(taken[:n])
	return func() {
		release(taken[n:])
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}
}

// Open runs out of descriptors at each of its steps. It returns an error, and leaves no descriptor and no
// goroutine.
func TestOpenWithoutDescriptors(t *testing.T) {
	l := newLab(t, 1500, 1)
	onSide(t, l, lab.A, func() error {
		d, err := Open(lab.Interface, small()) // opens what the process keeps, such as the network poller
		if err != nil {
			return err
		}
		if err := d.Close(); err != nil {
			return err
		}
		fds, goroutines := descriptors(t), runtime.NumGoroutine()
		for n := 0; ; n++ {
			restore := limitDescriptors(t, n)
			d, err := Open(lab.Interface, small())
			if err == nil {
				err = d.Close()
				restore()
				if n < 10 {
					t.Errorf("Open needs only %d descriptors: the test tests little", n)
				}
				return err
			}
			restore()
			if d != nil {
				t.Errorf("with %d descriptors: Open returned a device and an error", n)
			}
			if now := descriptors(t); now > fds {
				t.Errorf("with %d descriptors: %d are left open", n, now-fds)
				fds = now
			}
			for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
				runtime.Gosched() // a goroutine may be about to end
			}
			if now := runtime.NumGoroutine(); now > goroutines {
				t.Errorf("with %d descriptors: %d goroutines are left", n, now-goroutines)
				goroutines = now
			}
		}
	})
}

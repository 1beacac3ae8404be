package lab

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestSetOffloads(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skipf("needs root (uid %d)", unix.Geteuid())
	}
	l, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, on := range []bool{false, true} {
		if err := l.SetOffloads(on); err != nil {
			t.Fatal(err)
		}
		for _, s := range []Side{A, B} {
			if err := l.Do(s, func() error { return checkOffloads(t, s, on) }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func checkOffloads(t *testing.T, s Side, want bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, o := range offloads {
		// The number of a "get" command is one less than that of its "set" command.
		value, err := ethtool(fd, Interface, o.set-1, 0)
		if err != nil {
			return err
		}
		if got := value != 0; got != want {
			t.Errorf("side %s: %s: got %t, want %t", s, o.name, got, want)
		}
	}
	return nil
}

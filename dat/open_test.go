package dat

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

// explains checks the error of a failed open: it wraps a DAT error and has the given words on one line.
func explains(t *testing.T, name string, err error, want error, words ...string) {
	t.Helper()
	wants(t, name, err, want)
	if err == nil {
		return
	}
	t.Logf("%s: %v", name, err)
	for _, w := range append(words, name) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q is not in %q", name, w, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: more than one line: %q", name, err)
	}
}

func TestOpenUnknown(t *testing.T) {
	for name, want := range map[string]error{
		"40": ErrProviderNotFound, "x": ErrProviderNotFound, "": ErrProviderNotFound, "udp:": ErrProviderNotFound,
		"ofa:mlx5": ErrProviderNotFound, "udp:none0": ErrProviderNotFound, "udp:192.0.2.1": ErrProviderNotFound,
		"udp:0.0.0.0": ErrInvalidParameter, "udp:224.0.0.1": ErrInvalidParameter,
	} {
		ia, err := Open(name, Options{})
		explains(t, name, err, want)
		if ia != nil {
			t.Errorf("%s: an adapter and an error", name)
		}
	}
	_, err := OpenLink(Options{})
	wants(t, "no link", err, ErrInvalidParameter)
}

// TestOpenLimits: a negative time is an error; a time above the maximum is reduced to the maximum.
func TestOpenLimits(t *testing.T) {
	n := newSim(t)
	for _, l := range []Limits{{GiveUp: -1}, {NotReady: -1}, {KeepAlive: -1}, {ListenGrace: -1}} {
		ia, err := n.open(0, Options{Limits: l})
		wants(t, fmt.Sprint(l), err, ErrInvalidParameter)
		if ia != nil {
			t.Error("an adapter and an error")
		}
	}
	newHost(t, n, 0, Options{Limits: Limits{GiveUp: time.Hour, NotReady: time.Hour, KeepAlive: time.Hour, ListenGrace: time.Hour}})
}

func TestPortInUse(t *testing.T) {
	u := newUDP(t).(udp)
	a, b := newHosts(t, u, Options{})
	x, y := pair(a, b, nil)
	_, err := Open("udp:"+u.absent().String(), Options{Port: u.port}) // a socket has this port
	explains(t, "udp:"+u.absent().String(), err, ErrInsufficientResources, "port")
	wants(t, "link error", err, link.ErrBusy)
	proves(x, y)
}

// A shortage of descriptors or memory has its own DAT error, whatever was opened without success.
func TestShortageStatus(t *testing.T) {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS} {
		err := fmt.Errorf("udplink: open: %w", os.NewSyscallError("socket", e))
		if got := openStatus(err); got != ErrInsufficientResources {
			t.Errorf("%v: %v", err, got)
		}
	}
	if got := openStatus(syscall.EIO); got != ErrInternalError {
		t.Errorf("EIO: %v", got)
	}
}

// An error for lack of descriptors must say which limit to raise.
func TestOpenWithoutDescriptors(t *testing.T) {
	err := &openError{"udp:127.0.0.1", ErrInsufficientResources, fmt.Errorf("eventfd: %w", syscall.EMFILE)}
	if !strings.HasSuffix(err.Error(), "raise the limit of open files (ulimit -n, or LimitNOFILE= of systemd)") {
		t.Error(err)
	}
}

package identity

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/datxdp/datxdp/internal/handshake"
)

func known(t *testing.T, name string) *Known {
	t.Helper()
	k, err := OpenKnown(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestKnown: a server is added once, and found again, also by another program. Another key for its address is refused.
func TestKnown(t *testing.T) {
	name := filepath.Join(t.TempDir(), "known")
	k := known(t, name)
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	four, six := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("fe80::7%eth0")
	if _, found, err := k.Find(four); found || err != nil {
		t.Errorf("a server in an empty file: %v", err)
	}
	write(t, name, "# servers\n::ffff:192.0.2.9 "+text(9), 0o600) // a user has edited it, and left the last line open
	for a, n := range map[netip.Addr]byte{four: 1, six: 1} {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := k.Add(a, public(t, n)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if err := known(t, name).Add(four, public(t, 2)); !errors.Is(err, ErrOtherKey) {
		t.Errorf("another key: %v", err)
	}
	for a, want := range map[netip.Addr]handshake.PublicKey{four: public(t, 1), six: public(t, 1), netip.MustParseAddr("192.0.2.9"): peerID(9).Key} {
		if key, found, err := known(t, name).Find(a); key != want || !found || err != nil {
			t.Errorf("%v: %x, %v, %v", a, key, found, err)
		}
	}
	b, err := os.ReadFile(name)
	if err != nil || strings.Count(string(b), Text(public(t, 1))) != 2 {
		t.Errorf("%v, the file has\n%s", err, b)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, found, err := k.Find(four); found || err != nil {
		t.Errorf("without the file: %v", err)
	}
}

// TestBadKnown: a file that others may change, or that is another one, is refused, and an error quotes nothing.
func TestBadKnown(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"loose":  {"", 0o622, "chmod go-w"},
		"key":    {text(0x81), 0o600, "key:1: not a known server: write an address and a public key"},
		"peers":  {"\n" + text(1) + " name=web", 0o600, "peers:2: not a known server: the first word is not an address"},
		"secret": {"10.0.0.1 " + text(0x81), 0o600, "secret:1: not a known server: the second word is not a public key: " + errPrivate.Error()},
	} {
		file := write(t, filepath.Join(dir, name), tc.text, tc.mode)
		if _, err := OpenKnown(file); err == nil || !strings.Contains(err.Error(), tc.want) || secretText.MatchString(err.Error()) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	if _, err := OpenKnown(filepath.Join(dir, "no", "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

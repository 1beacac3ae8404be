package stream

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// TestLingerOption: streams of a Dialer and of a Listener begin with the linger time of its options.
func TestLingerOption(t *testing.T) {
	a, b := udp(t)
	for option, want := range map[time.Duration]time.Duration{
		0: -1, -1: 0, time.Millisecond: time.Millisecond, 1<<63 - 1: maxLinger,
	} {
		l, err := (&ListenConfig{IA: b, Linger: option}).Listen(t.Context(), 0)
		check(t, err)
		c, err := (&Dialer{IA: a, Linger: option}).dial(t.Context(), l.Addr().String())
		check(t, err)
		accepted, err := l.Accept()
		check(t, err)
		for _, c := range []*Conn{c, accepted.(*Conn)} {
			if c.linger != want {
				t.Errorf("option %v: %v, want %v", option, c.linger, want)
			}
		}
		_, err = c.Write(make([]byte, 100))
		check(t, err)
		_ = c.Close() // says what was not delivered
		if _, err := accepted.Read(make([]byte, 1)); option < 0 && err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after Close without linger: %v", err)
		}
		_ = accepted.Close() // a linger of 1 ms may be too short on a loaded host
		check(t, l.Close())
	}
}

// TestSecurityOption: the options of a Dialer and of a Listener open the adapters in secure mode.
func TestSecurityOption(t *testing.T) {
	var files [2]string
	var keys [2]dat.PublicKey
	for i := range files {
		files[i], keys[i] = newKey(t)
	}
	peers := filepath.Join(t.TempDir(), "peers")
	check(t, os.WriteFile(peers, []byte(keys[0].String()+" name=alice\n"), 0o600))
	lc := ListenConfig{Adapter: "udp:127.92.0.1", Security: dat.Security{KeyFile: files[1], PeersFile: peers}}
	l, err := lc.Listen(t.Context(), 7000)
	check(t, err)
	defer l.Close()
	d := Dialer{Adapter: "udp:127.92.0.2", Security: dat.Security{KeyFile: files[0]}, PeerKey: keys[1]}
	c, err := d.dial(context.Background(), l.Addr().String())
	check(t, err)
	defer c.Close()
	accepted, err := l.Accept()
	check(t, err)
	defer accepted.Close()
	if key, name := accepted.(*Conn).Identity(); key != keys[0] || name != "alice" {
		t.Errorf("the client is %q %v", name, key)
	}
	if key, _ := c.Identity(); key != keys[1] {
		t.Errorf("the server is %v", key)
	}
	other := lc
	other.Security.KeyFile = files[0]
	if _, err := other.Listen(t.Context(), 7001); !errors.Is(err, dat.ErrInvalidParameter) {
		t.Errorf("other keys for an adapter that is open: %v", err)
	}
}

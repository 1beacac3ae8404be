package stream

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// newKey makes a key file, and returns its name and the public key.
func newKey(t *testing.T) (file string, public dat.PublicKey) {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(key.Bytes())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, dat.PublicKey(key.PublicKey().Bytes())
}

// secureSim makes two simulated adapters in secure mode, of which b knows a.
func secureSim(t *testing.T) (a, b *dat.IA, keys [2]dat.PublicKey) {
	t.Helper()
	var files [2]string
	for i := range files {
		files[i], keys[i] = newKey(t)
	}
	peers := filepath.Join(t.TempDir(), "peers")
	if err := os.WriteFile(peers, []byte(keys[0].String()+" name=alice\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := simlink.New(simlink.Config{Immediate: true})
	a, b = adapters(t, func(side int) (*dat.IA, error) {
		o := options
		if o.Security.KeyFile = files[side]; side == 1 {
			o.Security.PeersFile = peers
		}
		return dat.OpenLink(o, n.Link(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(side + 1)}), dat.DefaultPort)))
	})
	return a, b, keys
}

// TestSecure: a stream between adapters in secure mode carries bytes, and the server knows the client. A dial that names
// another key, or none, fails with an error that says why.
func TestSecure(t *testing.T) {
	a, b, keys := secureSim(t)
	l, err := (&ListenConfig{IA: b}).Listen(context.Background(), 7000)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	echoed := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			echoed <- err
			return
		}
		if key, name := c.(*Conn).Identity(); key != keys[0] || name != "alice" {
			t.Errorf("the client is %q %v", name, key)
		}
		_, err = io.Copy(c, c)
		echoed <- errors.Join(err, c.Close())
	}()
	d := Dialer{IA: a, PeerKey: keys[1]}
	c, err := d.DialContext(context.Background(), "", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if key, _ := c.(*Conn).Peer(); key != keys[1] {
		t.Errorf("the server is %v", key)
	}
	sent, got := make([]byte, 1<<20), make([]byte, 1<<20)
	_, _ = rand.Read(sent) // it never fails
	go func() {
		_, _ = c.Write(sent) // the comparison shows an error
		_ = c.(*Conn).CloseWrite()
	}()
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("other bytes came back: %v", err)
	}
	if err := errors.Join(<-echoed, c.Close()); err != nil {
		t.Error(err)
	}
	for _, tc := range []struct {
		key  dat.PublicKey
		want error
		text string
	}{{keys[0], syscall.ETIMEDOUT, "key"}, {dat.PublicKey{}, dat.ErrInvalidParameter, "secure mode"}} {
		d := Dialer{IA: a, PeerKey: tc.key, Timeout: 200 * time.Millisecond}
		c, err := d.DialContext(context.Background(), "", l.Addr().String())
		var op *net.OpError
		if c != nil || !errors.As(err, &op) || !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("got %v, want %v", err, tc.want)
		}
	}
}

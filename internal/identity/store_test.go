package identity

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/datxdp/datxdp/internal/handshake"
)

// TestSources: the option goes before the credential, and the credential before the variable.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	option := write(t, "key", text(1), 0o600)
	key := func(f Files) handshake.PublicKey {
		t.Helper()
		s, err := Open(f)
		if err != nil {
			t.Fatal(err)
		}
		return s.Current().Keys.Connect().Public()
	}
	t.Setenv(credentialsVar, "")
	t.Setenv(KeyVariable, "")
	if _, err := Open(Files{}); !errors.Is(err, ErrNoKey) {
		t.Errorf("no source: %v", err)
	}
	t.Setenv(credentialsVar, dir)
	if _, err := Open(Files{}); !errors.Is(err, ErrNoKey) {
		t.Errorf("no credential: %v", err)
	}
	t.Setenv(KeyVariable, text(3))
	if got := key(Files{}); got != public(t, 3) {
		t.Errorf("variable: got key %x", got)
	}
	write(t, filepath.Join(dir, credentialsFile), text(2), 0o600)
	if got := key(Files{}); got != public(t, 2) {
		t.Errorf("credential: got key %x", got)
	}
	if got := key(Files{Key: option}); got != public(t, 1) {
		t.Errorf("option: got key %x", got)
	}
	if _, err := Open(Files{Key: option + "x"}); err == nil {
		t.Error("a key file that does not exist is passed over")
	}
	write(t, filepath.Join(dir, credentialsFile), text(2), 0o644)
	if _, err := Open(Files{}); err == nil {
		t.Error("a credential that everybody may read is passed over")
	}
	lost := t.TempDir()
	if err := os.Symlink(filepath.Join(lost, "nothing"), filepath.Join(lost, credentialsFile)); err != nil {
		t.Fatal(err)
	}
	t.Setenv(credentialsVar, lost)
	if _, err := Open(Files{}); err == nil || errors.Is(err, ErrNoKey) {
		t.Errorf("a credential that leads nowhere is passed over: %v", err)
	}
	t.Setenv(credentialsVar, "")
	t.Setenv(KeyVariable, "x")
	if _, err := Open(Files{}); err == nil || err.Error() != "DATXDP_KEY:1: not a private key: write 32 bytes in base64, which are 44 characters, not 1" {
		t.Errorf("variable: %v", err)
	}
}

// files makes a key file and a file of peers.
func files(t *testing.T, peers string) Files {
	t.Helper()
	return Files{write(t, "key", text(1), 0o600), write(t, "peers", peers, 0o600)}
}

func open(t *testing.T, f Files) *Store {
	t.Helper()
	s, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestReload: a Reload replaces keys and peers, tells which peers are gone, and drops the secrets before.
func TestReload(t *testing.T) {
	s := open(t, files(t, "psk:"+text(1)+" name=a\n"+text(2)+" name=b\npsk:"+text(3)+" name=c\n"+text(4)+" name=d\n"))
	before := s.Current()
	a, c := before.Policy.FindShared(shared(1).ID()), before.Policy.FindShared(shared(3).ID())

	write(t, s.files.Key, text(2), 0o600)
	write(t, s.files.Peers, "psk:"+text(5)+" name=a\npsk:"+text(3)+" name=new rate=5\n"+text(4)+"\n", 0o600)
	removed, err := s.Reload()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range removed {
		names = append(names, p.String())
	}
	if want := []string{"a", "b"}; !slices.Equal(names, want) {
		t.Errorf("removed %v, want %v", names, want)
	}
	now := s.Current()
	if now.Keys.Connect().Public() != public(t, 2) || now.Policy.Find(c.ID()).String() != "new" {
		t.Error("the new files are not in force")
	}
	for _, p := range []*Peer{a, c} {
		key := *shared(9)
		if p.Secret(&key) || key != (handshake.SharedKey{}) || p.secret.key != (handshake.SharedKey{}) {
			t.Errorf("%v: the old secret is still there", p)
		}
	}
	var key handshake.SharedKey
	if !now.Policy.FindShared(shared(3).ID()).Secret(&key) || key != *shared(3) {
		t.Error("the new secret was dropped")
	}
	if removed, err := s.Reload(); err != nil || len(removed) > 0 {
		t.Errorf("the same files: removed %v, %v", removed, err)
	}
}

// TestFailedReload: after an error in one of the files both are as before.
func TestFailedReload(t *testing.T) {
	s := open(t, files(t, "psk:"+text(1)+"\n"))
	before := s.Current()
	for _, broken := range []Files{{text(2), "psk:" + text(3) + "\nx"}, {"x", ""}} {
		write(t, s.files.Key, broken.Key, 0o600)
		write(t, s.files.Peers, broken.Peers, 0o600)
		if removed, err := s.Reload(); err == nil || removed != nil {
			t.Errorf("got %v, %v", removed, err)
		}
		var key handshake.SharedKey
		if s.Current() != before || !before.Policy.FindShared(shared(1).ID()).Secret(&key) {
			t.Error("the Set before is no longer in force")
		}
	}
}

// TestNoPeers: without a file of peers nobody is known, nor after Close.
func TestNoPeers(t *testing.T) {
	f := files(t, text(1)+"\npsk:"+text(2))
	s := open(t, f)
	peer := s.Current().Policy.FindShared(shared(2).ID())
	s.Close()
	if s.Current().Policy.Find(peerID(1)) != nil || peer.Secret(new(handshake.SharedKey)) {
		t.Error("a peer is known after Close")
	}
	s.Close()
	f.Peers = ""
	s = open(t, f)
	if s.Current().Policy.Find(peerID(1)) != nil || s.Current().Policy.FindShared(shared(2).ID()) != nil {
		t.Error("a peer is known without a file of peers")
	}
}

// TestReloadWhileUsed: a secret is whole or not there while another goroutine reloads the files.
func TestReloadWhileUsed(t *testing.T) {
	f := files(t, "psk:"+text(1))
	s := open(t, f)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				var key handshake.SharedKey
				if s.Current().Policy.FindShared(shared(1).ID()).Secret(&key) && key != *shared(1) {
					t.Error("half a secret")
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 100 {
		if _, err := s.Reload(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	if err := os.Remove(f.Peers); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reload(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

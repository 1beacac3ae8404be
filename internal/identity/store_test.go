package identity

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// files makes a key file with text(9) and a file of peers.
func files(t *testing.T, peers string) Files {
	t.Helper()
	return Files{Key: write(t, "key", text(9), 0o600), Peers: write(t, "peers", peers, 0o600)}
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
	for _, broken := range []Files{{Key: text(2), Peers: "psk:" + text(3) + "\nx"}, {Key: "x"}} {
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
	f := files(t, text(3)+"\npsk:"+text(2))
	s := open(t, f)
	peer := s.Current().Policy.FindShared(shared(2).ID())
	s.Close()
	if s.Current().Policy.Find(peerID(3)) != nil || peer.Secret(new(handshake.SharedKey)) {
		t.Error("a peer is known after Close")
	}
	s.Close()
	f.Peers = ""
	s = open(t, f)
	if s.Current().Policy.Find(peerID(3)) != nil || s.Current().Policy.FindShared(shared(2).ID()) != nil {
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

// TestMisplacedPrivateKey: a private key in the file of peers is refused, and so is one file for keys and peers. The error
// names the place, and does not have the key.
func TestMisplacedPrivateKey(t *testing.T) {
	own := files(t, text(2)+"\n# mine\n"+text(9)+" name=me\n")
	copied := files(t, text(2))
	link := copied.Key + ".link"
	if err := os.Symlink(copied.Key, link); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		files Files
		want  string
	}{
		"own key":   {own, own.Peers + ":3: a private key of this host is in the place of a public key: "},
		"same file": {Files{Key: copied.Key, Peers: copied.Key}, copied.Key + ": this is the key file, and the file of peers too: "},
		"same link": {Files{Key: copied.Key, Peers: link}, link + ": this is the key file, and the file of peers too: "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(tc.files); err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), text(9)[:20]) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestNewKeysAreNoPublicKeys: a private key of CreateKey is noticed wherever a public key belongs, also on another host.
func TestNewKeysAreNoPublicKeys(t *testing.T) {
	for range 8 {
		name := filepath.Join(t.TempDir(), "key")
		if _, err := CreateKey(name); err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parsePeers("p", key); !errors.Is(err, errPrivate) {
			t.Errorf("in a file of peers: %v", err)
		}
		if _, err := ParsePublic(strings.TrimSpace(string(key))); !errors.Is(err, errPrivate) {
			t.Errorf("ParsePublic: %v", err)
		}
	}
}

// write makes a file with a mode, whatever the umask is.
func write(t testing.TB, name, text string, mode os.FileMode) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.TempDir(), name)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

package dat

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// keyLines matches the two lines of a connection in the key log.
var keyLines = regexp.MustCompile(`^DATXDP2_REQUESTER ([0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{8}) ([0-9a-f]{64})
DATXDP2_SERVER ([0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{8}) ([0-9a-f]{64})
$`)

// TestKeyLog: DATXDP_KEYLOG makes each end write the secrets of its connections to a file that only the user may read, and
// the log warns of it.
func TestKeyLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys")
	t.Setenv("DATXDP_KEYLOG", name)
	k := newKeyring(t)
	n := newSim(t)
	var log syncBuffer
	options := func(host, peer string) Options {
		o := k.options(host, k.line(peer, ""))
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		return o
	}
	a, b := newHost(t, n, 0, options("alice", "bob")), newHost(t, n, 1, options("bob", "alice"))
	b.listen(testQual, 64)
	joinAs(a.point(nil), b.point(nil), k.publicOf("bob"), "")
	if warned := log.String(); strings.Count(warned, "DATXDP_KEYLOG is set") != 2 || !strings.Contains(warned, "level=WARN") || !strings.Contains(warned, name) {
		t.Errorf("the log says %q", warned)
	}
	if mode := must(os.Stat(name))(t).Mode(); mode != 0o600 {
		t.Errorf("mode of the file: %v", mode)
	}
	text := string(must(os.ReadFile(name))(t))
	first, second := text[:len(text)/2], text[len(text)/2:]
	m := keyLines.FindStringSubmatch(first)
	if first != second || m == nil || m[1] != m[3] || m[2] == m[4] {
		t.Errorf("the file has\n%s", text)
	}
}

// TestKeyLogRefused: an adapter in secure mode does not open with a key log that others may read. One in plaintext mode has
// no use for it.
func TestKeyLogRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys")
	ok(t, os.WriteFile(name, nil, 0o600))
	ok(t, os.Chmod(name, 0o644))
	t.Setenv("DATXDP_KEYLOG", name)
	key := newKeyring(t).key("alice")
	_, err := opens(t, Security{KeyFile: key})
	wants(t, "open", err, ErrInvalidParameter)
	if !strings.Contains(err.Error(), "chmod 600 "+name) {
		t.Errorf("the error is %v", err)
	}
	if _, err := opens(t, Security{}); err != nil {
		t.Errorf("in plaintext mode: %v", err)
	}
}

// TestKeyLogIsNoKeyFile: an adapter does not open if its key log is one of its own files.
func TestKeyLogIsNoKeyFile(t *testing.T) {
	k := newKeyring(t)
	files := k.options("alice", k.line("bob", "")).Security
	ok(t, os.Chmod(files.PeersFile, 0o600))
	for _, name := range []string{files.KeyFile, files.PeersFile} {
		before := must(os.ReadFile(name))(t)
		t.Setenv("DATXDP_KEYLOG", name)
		_, err := opens(t, files)
		wants(t, "open", err, ErrInvalidParameter)
		if !strings.Contains(err.Error(), "of the adapter: name another file") || !bytes.Equal(before, must(os.ReadFile(name))(t)) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

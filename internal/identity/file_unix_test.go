//go:build unix

package identity

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestModes: a key file is for its user alone. The file of peers may be read by all if it has no secrets.
func TestModes(t *testing.T) {
	for _, mode := range []os.FileMode{0o400, 0o600, 0o700} {
		if _, err := ReadKeys(write(t, "key", text(1), mode)); err != nil {
			t.Errorf("key file with mode %o: %v", mode, err)
		}
		if _, err := readPeers(write(t, "peers", "psk:"+text(1), mode)); err != nil {
			t.Errorf("secrets with mode %o: %v", mode, err)
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o440, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o660, 0o650} {
		if mode&^0o600 == byGroup && os.Geteuid() == 0 {
			continue // TestGroupOfRoot
		}
		key, secrets := write(t, "key", text(1), mode), write(t, "peers", "psk:"+text(1), mode)
		for name, read := range map[string]func() error{
			key:     func() error { _, err := ReadKeys(key); return err },
			secrets: func() error { _, err := readPeers(secrets); return err },
		} {
			want := "chmod 600 " + name
			if mode&0o022 != 0 && name == secrets {
				want = "chmod go-w " + name
			}
			if err := read(); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("mode %o: got %v, want %s", mode, err, want)
			}
		}
	}
	for mode, want := range map[os.FileMode]bool{0o644: true, 0o444: true, 0o664: false, 0o646: false} {
		if _, err := readPeers(write(t, "peers", text(1), mode)); (err == nil) != want {
			t.Errorf("peers with mode %o: %v", mode, err)
		}
	}
}

// TestGroupOfRoot: the group may read secrets of root, as those of a pod with fsGroup, but not change them.
func TestGroupOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes files of root: make race as root runs this test")
	}
	for _, mode := range []os.FileMode{0o640, 0o440} {
		key, secrets := write(t, "key", text(1), mode), write(t, "peers", "psk:"+text(1), mode)
		for _, name := range []string{key, secrets} {
			if err := os.Chown(name, 0, 1000); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadKeys(key); err != nil {
			t.Errorf("key file with mode %o: %v", mode, err)
		}
		if _, err := readPeers(secrets); err != nil {
			t.Errorf("secrets with mode %o: %v", mode, err)
		}
	}
}

// TestOwner: a file of another user is refused, whatever its mode is.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away: make race as root runs this test")
	}
	name := write(t, "key", text(1), 0o600)
	if err := os.Chown(name, 65534, -1); err != nil {
		t.Fatal(err)
	}
	want := "key file: " + name + ": it belongs to user 65534, not to user 0 of this process or to root: chown 0 " + name
	if _, err := ReadKeys(name); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if _, err := readPeers(name); err == nil {
		t.Error("the file of peers may belong to others")
	}
}

// TestKinds: only a regular file of a plausible size is read. A link to one is good.
func TestKinds(t *testing.T) {
	dir := t.TempDir()
	fifo, link, large := filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), write(t, "large", "", 0o600)
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxKeyFile+1); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		dir:                          "key file: " + dir + ": not a regular file",
		fifo:                         "key file: " + fifo + ": not a regular file",
		large:                        "key file: " + large + ": 65537 bytes, and the most are 65536: this is another file",
		dir + "/none":                "key file: open " + dir + "/none: no such file or directory: correct the name, or make the file with datbench keygen",
		write(t, "empty", "", 0o600): "empty has no key: make a key file with datbench keygen",
	} {
		if _, err := ReadKeys(name); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if err := os.Symlink(write(t, "key", text(1), 0o600), link); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKeys(link); err != nil {
		t.Error(err)
	}
}

// TestChangedWhileRead: a file that another process writes is not half a file.
func TestChangedWhileRead(t *testing.T) {
	for _, size := range []int64{0, 10, 100} {
		f, err := openPrivate(write(t, "peers", text(1), 0o600), maxPeers, change)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(f.Name(), size); err != nil {
			t.Fatal(err)
		}
		if b, err := f.read(); err == nil || !strings.HasSuffix(err.Error(), "changed while it was read: try again") {
			t.Errorf("%d bytes: got %d, %v", size, len(b), err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCreate: a new file is for its user alone, replaces nothing, and is read again.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "key")
	public, err := CreateKey(name)
	if err != nil {
		t.Fatal(err)
	}
	if k, err := ReadKeys(name); err != nil || k.Connect().Public() != public {
		t.Errorf("got %v, %v", k, err)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := name + " exists already, and a lost key cannot be made again: choose another name"
	if _, err := CreateKey(name); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
		t.Errorf("the key was replaced: %v", err)
	}
	secret := filepath.Join(dir, "secret")
	if err := CreateSecret(secret); err != nil {
		t.Fatal(err)
	}
	if p, err := readPeers(secret); err != nil || len(p.shared) != 1 {
		t.Errorf("got %v, %v", p, err)
	}
	for _, name := range []string{name, secret} {
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	if other, err := CreateKey(filepath.Join(dir, "other")); err != nil || other == public {
		t.Errorf("two keys are the same, or %v", err)
	}
}

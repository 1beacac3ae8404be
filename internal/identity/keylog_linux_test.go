package identity

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestKeyLog: the file is made for the user alone, and two users of it append.
func TestKeyLog(t *testing.T) {
	if k, err := OpenKeyLog(Files{}, nil); k != nil || err != nil {
		t.Fatalf("without the variable: %v, %v", k, err)
	}
	name := filepath.Join(t.TempDir(), "keys")
	t.Setenv(keyLogVar, name)
	if err := CheckKeyLog(Files{}); err != nil {
		t.Errorf("a missing file: %v", err)
	}
	for _, text := range []string{"one\n", "two\n"} {
		k, err := OpenKeyLog(Files{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Write([]byte(text)); err != nil || k.Name() != name {
			t.Errorf("%s: %v", k.Name(), err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if b, _ := os.ReadFile(name); string(b) != "one\ntwo\n" {
		t.Errorf("the file has %q", b)
	}
	if err := CheckKeyLog(Files{}); err != nil {
		t.Error(err)
	}
}

// TestKeyLogRefused: a file that others may read, or that is no file, is refused, and left as it is.
func TestKeyLogRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		write(t, filepath.Join(dir, "loose"), "text", 0o644): "chmod 600",
		dir:                                     "is a directory",
		pipe:                                    "no such device or address",
		"/dev/null":                             "not a regular file",
		filepath.Join(dir, "no", "such", "dir"): "no such file",
	} {
		t.Setenv(keyLogVar, name)
		if k, err := OpenKeyLog(Files{}, nil); k != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), keyLogVar) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "loose")); string(b) != "text" || err != nil {
		t.Errorf("the file has %q: %v", b, err)
	}
}

// TestKeyLogFollowsNoLink: a symbolic link is refused, and nothing is made where it leads.
func TestKeyLogFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv(keyLogVar, link)
	if k, err := OpenKeyLog(Files{}, nil); k != nil || err == nil || !strings.Contains(err.Error(), "symbolic links") {
		t.Errorf("got %v, %v", k, err)
	}
	if _, err := os.Lstat(target); !os.IsNotExist(err) {
		t.Errorf("the target of the link: %v", err)
	}
}

// TestKeyLogOfUsedFile: the files of the adapter are refused as a key log, by any name, and left as they are.
func TestKeyLogOfUsedFile(t *testing.T) {
	dir, credentials := t.TempDir(), t.TempDir()
	key, peers := write(t, filepath.Join(dir, "key"), "the key", 0o600), write(t, filepath.Join(dir, "peers"), "the peers", 0o600)
	passed := write(t, filepath.Join(credentials, credentialsFile), "the key", 0o600)
	link, hardLink := filepath.Join(dir, "link"), filepath.Join(dir, "hard")
	if err := errors.Join(os.Symlink(key, link), os.Link(peers, hardLink)); err != nil {
		t.Fatal(err)
	}
	t.Setenv(credentialsVar, credentials)
	for _, tc := range []struct {
		name string
		used Files
		want string
	}{
		{key, Files{Key: key, Peers: peers}, "key file"}, {key, Files{Key: link}, "key file"},
		{peers, Files{Key: key, Peers: peers}, "file of peers"}, {hardLink, Files{Key: key, Peers: peers}, "file of peers"},
		{passed, Files{Peers: peers}, "key file"}, {passed, Files{Key: key}, ""}, {peers, Files{Key: key}, ""},
	} {
		t.Setenv(keyLogVar, tc.name)
		k, err := OpenKeyLog(tc.used, nil)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), "this is the "+tc.want+" of the adapter") {
			t.Errorf("%s of %+v: %v, want %q", tc.name, tc.used, err, tc.want)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{key: "the key", peers: "the peers", passed: "the key"} {
		if b := readAll(t, name); string(b) != want {
			t.Errorf("%s has %q", name, b)
		}
	}
}

// TestKeyLogLoses: the first failure of Write is reported, and no other one.
func TestKeyLogLoses(t *testing.T) {
	t.Setenv(keyLogVar, filepath.Join(t.TempDir(), "keys"))
	var warned []error
	k, err := OpenKeyLog(Files{}, func(err error) { warned = append(warned, err) })
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := k.Write([]byte("x")); err == nil {
			t.Error("a closed file was written")
		}
	}
	if len(warned) != 1 || !errors.Is(warned[0], os.ErrClosed) {
		t.Errorf("warned of %v", warned)
	}
}

// TestRaised: a program that root has made setuid is raised, and does not obey the variable. This one is not raised.
func TestRaised(t *testing.T) {
	if want := os.Geteuid() != os.Getuid(); raised() != want {
		t.Fatalf("raised is %v, with user %d and effective user %d", raised(), os.Getuid(), os.Geteuid())
	} else if want {
		if _, err := OpenKeyLog(Files{}, nil); err == nil || !strings.Contains(err.Error(), "more rights than its user") {
			t.Errorf("the error is %v", err)
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root makes a program setuid")
	}
	program := write(t, "setuid", string(readAll(t, "/proc/self/exe")), 0o755)
	if err := os.Chmod(program, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(program)), 0o755); err != nil { // t.TempDir is in a directory for root alone
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestRaised$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), keyLogVar+"=/dev/null")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestRaised") {
		t.Errorf("%v: %s", err, out)
	}
}

func readAll(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

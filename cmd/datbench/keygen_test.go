package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestKeygen: a new key file is for its user alone, and its public key is printed, then and later. The private key and
// the shared secret are not printed.
func TestKeygen(t *testing.T) {
	dir := t.TempDir()
	key, secret := filepath.Join(dir, "key"), filepath.Join(dir, "peers")
	made := inProcess(t, "keygen", key)
	if made.code != exitValid || made.stderr != "" || !regexp.MustCompile(`^[A-Za-z0-9+/]{43}=\n$`).MatchString(made.stdout) {
		t.Errorf("exit %d, %q, %q", made.code, made.stdout, made.stderr)
	}
	if shown := inProcess(t, "keygen", "--public", key); shown != made {
		t.Errorf("--public: %+v, want %+v", shown, made)
	}
	got := inProcess(t, "keygen", "--psk", secret)
	want := secret + " has a line with a shared secret: copy it to the file of peers of both hosts\n"
	if got.code != exitValid || got.stderr != "" || got.stdout != want {
		t.Errorf("--psk: exit %d, %q, %q", got.code, got.stdout, got.stderr)
	}
	for _, name := range []string{key, secret} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
		if strings.Contains(made.stdout+got.stdout, strings.TrimPrefix(strings.TrimSpace(string(text)), "psk:")) {
			t.Errorf("the secret in %s is printed", name)
		}
	}
}

func TestKeygenErrors(t *testing.T) {
	dir := t.TempDir()
	file, open := filepath.Join(dir, "file"), filepath.Join(dir, "open")
	for name, mode := range map[string]os.FileMode{file: 0o600, open: 0o644} {
		if err := errors.Join(os.WriteFile(name, []byte("x\n"), mode), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		args []string
		want string
	}{
		{nil, "keygen needs one file: datbench keygen FILE"},
		{[]string{"a", "b"}, "keygen needs one file: datbench keygen FILE"},
		{[]string{file}, file + " exists already, and a lost key cannot be made again: choose another name"},
		{[]string{"--psk", file}, file + " exists already, and a lost key cannot be made again: choose another name"},
		{[]string{dir + "/none/key"}, "open " + dir + "/none/key: no such file or directory"},
		{[]string{"--public", file}, file + ":1: not a private key: write 32 bytes in base64, which are 44 characters, not 1"},
		{[]string{"--public", open}, "key file: " + open + ": its group or others may access the secrets in it (mode 0644): chmod 600 " + open},
	}
	for _, tt := range tests {
		got := inProcess(t, append([]string{"keygen"}, tt.args...)...)
		if got.code != exitUsage || got.stdout != "" || got.stderr != "datbench: "+tt.want+"\n" {
			t.Errorf("%v: exit %d, %q, %q\nwant %s", tt.args, got.code, got.stdout, got.stderr, tt.want)
		}
	}
	if got := inProcess(t, "keygen", "--psk", "--public", file); got.code != exitUsage || got.stdout != "" {
		t.Errorf("--psk and --public: exit %d, %q", got.code, got.stdout)
	}
}

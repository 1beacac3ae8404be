package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/identity"
)

// securityOf returns the findings of the check for an adapter.
func securityOf(t *testing.T, ia string) []Finding {
	t.Helper()
	x := &exam{Target: Target{IA: ia}}
	if err := x.resolve(); err != nil {
		t.Fatal(err)
	}
	return checkSecurity(t.Context(), x)
}

// TestSecurity: the doctor says which mode an adapter would have, with which keys, and why it would not open.
func TestSecurity(t *testing.T) {
	dir := t.TempDir()
	key, loose, peers := filepath.Join(dir, "key"), filepath.Join(dir, "loose"), filepath.Join(dir, "peers")
	public, err := identity.CreateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{loose: string(text), peers: identity.Text(public) + " name=us\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(loose, 0o640); err != nil {
		t.Fatal(err)
	}
	const ia = "udp:127.0.0.1"
	for _, tc := range []struct {
		name, options, key, keyLog string // key: DATXDP_KEY
		want                       []Severity
		says                       string // by the last finding
	}{
		{"nothing", "", "", "", []Severity{Info}, "plaintext mode, since no key is named"},
		{"insecure", " insecure", "", "", []Severity{Info}, "plaintext mode"},
		{"insecure with a key", " insecure", string(text), "", []Severity{Warning}, "plaintext mode, although there is a key: DATXDP_KEY"},
		{"contradiction", " insecure key=" + key, "", "", []Severity{Error}, "insecure"},
		{"no peers", " key=" + key, "", "", []Severity{OK, Info}, "nobody may connect"},
		{"peers", " key=" + key + " peers=" + peers, "", "", []Severity{OK, OK}, "1 peer in " + peers},
		{"key in a variable", " peers=" + peers, string(text), "", []Severity{Warning, OK}, "1 peer in " + peers},
		{"peers without a key", " peers=" + peers, "", "", []Severity{Error}, "no private key"},
		{"missing", " key=" + key + "x", "", "", []Severity{Error}, "no such file"},
		{"others may read it", " key=" + loose, "", "", []Severity{Error}, "chmod 600 " + loose},
		{"key log", " key=" + key, "", filepath.Join(dir, "log"), []Severity{OK, Info, Warning}, filepath.Join(dir, "log")},
		{"refused key log", " key=" + key, "", loose, []Severity{OK, Info, Error}, "chmod 600 " + loose},
		{"key log in plaintext mode", "", "", loose, []Severity{Info}, "plaintext mode"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("DATXDP_KEY", tc.key)
			t.Setenv("DATXDP_KEYLOG", tc.keyLog)
			t.Setenv("CREDENTIALS_DIRECTORY", "")
			got := securityOf(t, ia+tc.options)
			if len(got) != len(tc.want) || !strings.Contains(got[len(got)-1].Found, tc.says) {
				t.Fatalf("%+v", got)
			}
			for i, f := range got {
				if f.Severity != tc.want[i] || f.Severity >= Warning && (f.Means == "" || f.Fix == "") || strings.Contains(f.Found, strings.TrimSpace(string(text))) {
					t.Errorf("finding %d, want %v: %+v", i, tc.want[i], f)
				}
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "log")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the doctor has made the key log: %v", err)
	}
}

// TestSecurityCredentials: the key of a systemd credential counts, and is named.
func TestSecurityCredentials(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	t.Setenv("DATXDP_KEY", "")
	t.Setenv("DATXDP_KEYLOG", "")
	if _, err := identity.CreateKey(filepath.Join(dir, "datxdp.key")); err != nil {
		t.Fatal(err)
	}
	if got := securityOf(t, "udp:127.0.0.1"); got[0].Severity != OK || !strings.Contains(got[0].Found, dir) {
		t.Errorf("%+v", got)
	}
}

// TestSecurityWithoutAES: a processor without the instructions is an error in secure mode.
func TestSecurityWithoutAES(t *testing.T) {
	got := secureFindings(nil, "key", identity.ErrProcessor, "")
	if len(got) != 1 || got[0].Severity != Error || !strings.Contains(got[0].Found, "AES") || !strings.Contains(got[0].Fix, "insecure") {
		t.Errorf("%+v", got)
	}
}

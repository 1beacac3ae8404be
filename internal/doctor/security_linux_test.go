package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// files are the files of TestSecurity, and the text of the key.
type files struct{ key, loose, peers, limits, log, text, public string }

func newFiles(t *testing.T) files {
	t.Helper()
	dir := t.TempDir()
	f := files{key: filepath.Join(dir, "key"), loose: filepath.Join(dir, "loose"), peers: filepath.Join(dir, "peers"),
		limits: filepath.Join(dir, "limits"), log: filepath.Join(dir, "log")}
	public, err := identity.CreateKey(f.key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.key)
	if err != nil {
		t.Fatal(err)
	}
	f.text, f.public = strings.TrimSpace(string(text)), identity.Text(public)
	line := identity.Text(public) + " name=us"
	for name, content := range map[string]string{f.loose: f.text, f.peers: line, f.limits: line + " rate=5"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(f.loose, 0o644); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSecurity: the doctor says which mode an adapter would have, with which keys, and why it would not open.
func TestSecurity(t *testing.T) {
	f := newFiles(t)
	const ia = "udp:127.0.0.1"
	for _, tc := range []struct {
		name, options, key, keyLog string // key: DATXDP_KEY
		want                       []Severity
		says                       string // by the last finding
	}{
		{"nothing", "", "", "", []Severity{Info}, "plaintext mode, since no key is named"},
		{"insecure", " insecure", "", "", []Severity{Info}, "plaintext mode"},
		{"insecure with a key", " insecure", f.text, "", []Severity{Warning}, "plaintext mode, although there is a key: DATXDP_KEY"},
		{"contradiction", " insecure key=" + f.key, "", "", []Severity{Error}, "insecure"},
		{"no peers", " key=" + f.key, "", "", []Severity{OK, Info}, "nobody may connect"},
		{"peers", " key=" + f.key + " peers=" + f.peers, "", "", []Severity{OK, OK}, "1 peer in " + f.peers},
		{"key in a variable", " peers=" + f.peers, f.text, "", []Severity{Warning, OK}, "1 peer in " + f.peers},
		{"peers without a key", " peers=" + f.peers, "", "", []Severity{Error}, "no private key"},
		{"missing", " key=" + f.key + "x", "", "", []Severity{Error}, "no such file"},
		{"others may read it", " key=" + f.loose, "", "", []Severity{Error}, "chmod 600 " + f.loose},
		{"key log", " key=" + f.key, "", f.log, []Severity{OK, Info, Warning}, f.log},
		{"refused key log", " key=" + f.key, "", f.loose, []Severity{OK, Info, Error}, "chmod 600 " + f.loose},
		{"key log is the key file", " key=" + f.key, "", f.key, []Severity{OK, Info, Error}, "this is the key file of the adapter"},
		{"key log in plaintext mode", "", "", f.loose, []Severity{Info}, "plaintext mode"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("DATXDP_KEY", tc.key)
			t.Setenv("DATXDP_KEYLOG", tc.keyLog)
			t.Setenv("CREDENTIALS_DIRECTORY", "")
			got := securityOf(t, ia+tc.options)
			if len(got) != len(tc.want) || !strings.Contains(got[len(got)-1].Found, tc.says) {
				t.Fatalf("%+v", got)
			}
			for i, found := range got {
				if found.Severity != tc.want[i] || found.Severity >= Warning && (found.Means == "" || found.Fix == "") || strings.Contains(found.Found, f.text) {
					t.Errorf("finding %d, want %v: %+v", i, tc.want[i], found)
				}
			}
		})
	}
	if _, err := os.Stat(f.log); !errors.Is(err, os.ErrNotExist) {
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

// TestSecurityKeys: with several keys, the doctor says with which one the adapter connects, and which others it accepts.
func TestSecurityKeys(t *testing.T) {
	dir := t.TempDir()
	var public []string
	var keys []byte
	for _, name := range []string{"new", "old"} {
		key, err := identity.CreateKey(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		public, keys = append(public, identity.Text(key)), append(keys, text...)
	}
	both := filepath.Join(dir, "both")
	if err := os.WriteFile(both, keys, 0o600); err != nil {
		t.Fatal(err)
	}
	want := "public key " + public[0] + ", with which it connects; it accepts " + public[1] + " too"
	if got := securityOf(t, "udp:127.0.0.1 key="+both); !strings.Contains(got[0].Found, want) {
		t.Errorf("got %+v, want %s", got[0], want)
	}
}

// TestSecurityExpiry: the doctor names the lines of the file of peers that have expired or will soon.
func TestSecurityExpiry(t *testing.T) {
	t.Setenv("DATXDP_KEYLOG", "")
	f := newFiles(t)
	now := time.Now().UTC()
	in := func(days int) string { return now.AddDate(0, 0, days).Format(time.RFC3339) }
	var lines strings.Builder
	for i, expires := range []string{in(-1), in(13), in(15), ""} {
		key, err := identity.CreateKey(filepath.Join(t.TempDir(), "key"))
		if err != nil {
			t.Fatal(err)
		}
		if expires != "" {
			expires = " expires=" + expires
		}
		fmt.Fprintf(&lines, "%s name=peer-%d%s\n", identity.Text(key), i+1, expires)
	}
	if err := os.WriteFile(f.peers, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := securityOf(t, "udp:127.0.0.1 key="+f.key+" peers="+f.peers)
	day := func(days int) string { return now.AddDate(0, 0, days).Format(time.DateOnly) }
	want := []string{"4 peers in " + f.peers, "1 peer in " + f.peers + " expired: peer-1 in line 1, on " + day(-1),
		"1 peer in " + f.peers + " will expire in the next 14 days: peer-2 in line 2, on " + day(13)}
	if len(got) != 1+len(want) {
		t.Fatalf("%+v", got)
	}
	for i, text := range want {
		if found := got[i+1]; found.Found != text || (found.Severity == Warning) != (i > 0) {
			t.Errorf("got %+v, want %s", found, text)
		}
	}
	if got := some([]string{"1", "2", "3", "4", "5", "6", "7"}); got != "1; 2; 3; 4; 5; and 2 more" {
		t.Errorf("many lines: %s", got)
	}
}

// TestSecurityTrust: the doctor says that an adapter trusts servers on first use, and makes no file of them.
func TestSecurityTrust(t *testing.T) {
	t.Setenv("DATXDP_KEYLOG", "")
	f := newFiles(t)
	known := filepath.Join(t.TempDir(), "known")
	for _, tc := range []struct {
		text     string // of the file; "" for no file
		severity Severity
		want     string
	}{
		{"", Info, "trust on first use: 0 known servers in " + known},
		{"10.0.0.1 " + f.public + "\n", Info, "trust on first use: 1 known server in " + known},
		{f.text, Error, known + ":1: not a known server"},
	} {
		if tc.text != "" {
			if err := os.WriteFile(known, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := securityOf(t, "udp:127.0.0.1 announce key="+f.key+" known="+known)
		if len(got) < 3 || got[2].Severity != tc.severity || !strings.HasPrefix(got[2].Found, tc.want) {
			t.Errorf("got %+v, want %s", got, tc.want)
		}
		if _, err := os.Stat(known); tc.text == "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the doctor has made the file: %v", err)
		}
	}
}

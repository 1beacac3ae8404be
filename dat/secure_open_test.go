package dat

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// opens reports whether a simulated adapter with the given Security opens, and whether it is secure.
func opens(t *testing.T, s Security) (secure bool, err error) {
	t.Helper()
	ia, err := newSimWith(t, simlink.Config{}).open(0, Options{Security: s})
	if err != nil {
		return false, err
	}
	secure = must(ia.Query())(t).Secure
	return secure, ia.Close()
}

// TestSecurityOptions: a key makes an adapter secure, wherever it comes from. What cannot be kept is refused.
func TestSecurityOptions(t *testing.T) {
	k := newKeyring(t)
	key, peers := k.key("alice"), k.file("peers", k.line("bob", ""))
	loose := k.key("loose")
	ok(t, os.Chmod(loose, 0o644))
	for _, tc := range []struct {
		name   string
		s      Security
		secure bool
		err    error
	}{
		{"nothing", Security{}, false, nil},
		{"insecure", Security{Insecure: true}, false, nil},
		{"key", Security{KeyFile: key}, true, nil},
		{"key and peers", Security{KeyFile: key, PeersFile: peers}, true, nil},
		{"peers without a key", Security{PeersFile: peers}, false, ErrInvalidParameter},
		{"no file", Security{KeyFile: key + "x"}, false, ErrInvalidParameter},
		{"no file of peers", Security{KeyFile: key, PeersFile: peers + "x"}, false, ErrInvalidParameter},
		{"not a key", Security{KeyFile: peers}, false, ErrInvalidParameter},
		{"others may read the key", Security{KeyFile: loose}, false, ErrInvalidParameter},
		{"contradiction", Security{KeyFile: key, Insecure: true}, false, ErrInvalidParameter},
	} {
		t.Run(tc.name, func(t *testing.T) {
			secure, err := opens(t, tc.s)
			if tc.err != nil {
				wants(t, "open", err, tc.err)
			} else if err != nil || secure != tc.secure {
				t.Errorf("secure %v, error %v", secure, err)
			}
		})
	}
	t.Setenv("DATXDP_KEY", string(must(os.ReadFile(key))(t)))
	if secure, err := opens(t, Security{}); !secure || err != nil {
		t.Errorf("with a key in the environment: secure %v, error %v", secure, err)
	}
	if secure, err := opens(t, Security{Insecure: true}); secure || err != nil {
		t.Errorf("insecure, with a key in the environment: secure %v, error %v", secure, err)
	}
}

// TestSecurityOfLaterOpen: a later open of an adapter gets the mode and the keys that it names, or an error.
func TestSecurityOfLaterOpen(t *testing.T) {
	u := newUDP(t).(udp)
	k := newKeyring(t)
	key := " key=" + k.key("alice")
	for _, tc := range []struct {
		first, later string
		want         error
	}{
		{"", "", nil},
		{"", " insecure", nil},
		{"", key, ErrInvalidParameter},
		{key, "", nil},
		{key, key, nil},
		{key, " insecure", ErrInvalidParameter},
		{key, " key=" + k.key("bob"), ErrInvalidParameter},
	} {
		name := "udp:" + u.addr(0).String()
		first := must(Open(name+tc.first, Options{Port: u.port}))(t)
		later, err := Open(name+tc.later, Options{Port: u.port})
		if tc.want == nil {
			if err != nil {
				t.Errorf("%q after %q: %v", tc.later, tc.first, err)
			} else if s := must(later.Query())(t).Secure; s != (tc.first == key) {
				t.Errorf("%q after %q: secure %v", tc.later, tc.first, s)
			}
		} else {
			wants(t, tc.later+" after "+tc.first, err, tc.want)
		}
		if err == nil {
			ok(t, later.Close())
		}
		ok(t, first.Close())
	}
}

// TestInsecureWithKey: the log warns of plaintext mode if there is a key, and says the mode of each adapter.
func TestInsecureWithKey(t *testing.T) {
	for _, key := range []string{"", string(must(os.ReadFile(newKeyring(t).key("alice")))(t))} {
		t.Setenv("DATXDP_KEY", key)
		var log bytes.Buffer
		ia := must(newSimWith(t, simlink.Config{}).open(0, Options{Security: Security{Insecure: true}, Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
		ok(t, ia.Close())
		warned := strings.Contains(log.String(), `level=WARN msg="dat: plaintext mode because of insecure, although there is a key" ia=link key=DATXDP_KEY`)
		if warned != (key != "") || !strings.Contains(log.String(), "security=plaintext") || key != "" && strings.Contains(log.String(), strings.TrimSpace(key)) {
			t.Errorf("with a key of %d bytes the log says %q", len(key), &log)
		}
	}
}

// TestEmptyKey: an adapter that is in plaintext mode because DATXDP_KEY is empty says so in the log.
func TestEmptyKey(t *testing.T) {
	t.Setenv("DATXDP_KEY", "")
	var log bytes.Buffer
	ia := must(newSimWith(t, simlink.Config{}).open(0, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	ok(t, ia.Close())
	if !strings.Contains(log.String(), `level=WARN msg="dat: plaintext mode, because the variable with the key is empty" ia=link variable=DATXDP_KEY`) {
		t.Errorf("the log says %q", &log)
	}
}

// TestSecurityWithoutAES: on a processor without AES instructions, an adapter with a key does not open, and says why. One in
// plaintext mode opens.
func TestSecurityWithoutAES(t *testing.T) {
	const child = "DATXDP_TEST_NO_AES"
	if os.Getenv(child) == "" {
		if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
			t.Skip("no other processor is supported in secure mode")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSecurityWithoutAES$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1", "GODEBUG=cpu.aes=off") // golang.org/x/sys/cpu reads it
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestSecurityWithoutAES") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	_, err := opens(t, Security{KeyFile: newKeyring(t).key("alice")})
	wants(t, "open", err, ErrModelNotSupported)
	if text := err.Error(); !strings.Contains(text, "no instructions for AES") || !strings.Contains(text, "insecure") {
		t.Errorf("the error is %v", err)
	}
	if secure, err := opens(t, Security{}); secure || err != nil {
		t.Errorf("in plaintext mode: secure %v, error %v", secure, err)
	}
}

//go:build datprovider

package main_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// overSecure runs a test over AF_XDP and over UDP, in secure mode: each side has a key and a file of peers, and dat.conf
// names them.
func overSecure(t *testing.T, test func(*hosts, *keyring)) {
	library := requireProvider(t)
	t.Parallel()
	for _, link := range []string{"xdp", "udp"} {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			h := &hosts{t: t, lab: labtest.New(t, lab.Options{})}
			k := newKeyring(t)
			for _, s := range []lab.Side{lab.A, lab.B} {
				h.security[s] = " key=" + k.key[s] + " peers=" + k.peers
			}
			h.configure(library)
			h.leavesNothing()
			test(h, k)
		})
	}
}

// keyring has the key file and the public key of each side, and a file of peers with both keys and addresses.
type keyring struct {
	key    [2]string
	public [2]string
	peers  string
}

func newKeyring(t *testing.T) *keyring {
	t.Helper()
	var k keyring
	for s := range k.key {
		k.key[s], k.public[s] = newKey(t)
	}
	k.peers = newPeers(t, k.line(lab.A), k.line(lab.B))
	return &k
}

// line returns the line of a side in a file of peers.
func (k *keyring) line(s lab.Side) string {
	return fmt.Sprintf("%s from=%s", k.public[s], s.Addr4())
}

// newPeers returns a new file of peers.
func newPeers(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "peers")
	must(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	return name
}

// newKey returns a new key file and its public key, as datbench keygen makes them.
func newKey(t *testing.T) (name, public string) {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	must(t, err)
	name = filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(name, []byte(base64.StdEncoding.EncodeToString(key.Bytes())+"\n"), 0o600))
	return name, base64.StdEncoding.EncodeToString(key.PublicKey().Bytes())
}

// TestSecureTransaction runs transactions in secure mode.
func TestSecureTransaction(t *testing.T) {
	var all []transaction
	for _, r := range transactions() {
		if r.secure || !testing.Short() {
			all = append(all, r)
		}
	}
	overSecure(t, func(h *hosts, _ *keyring) { h.transact(all) })
}

// TestSecureDTest runs dtests in secure mode.
func TestSecureDTest(t *testing.T) {
	overSecure(t, func(h *hosts, _ *keyring) {
		for _, r := range dtests {
			if r.secure || !testing.Short() {
				h.t.Run(r.line, func(t *testing.T) { h.in(t).pair(fewerRounds(r.line), r.want) })
			}
		}
	})
}

// TestSecureCalls runs testdata/calls.c in secure mode. The adapter connects to itself, with its own key.
func TestSecureCalls(t *testing.T) {
	requireProvider(t)
	calls := compile(t, "calls")
	list, _ := exec.Command(calls).Output()
	names := strings.Fields(string(list))
	overSecure(t, func(h *hosts, _ *keyring) {
		p := h.start(lab.A, calls+" "+ia+" "+strings.Join(names, " "))
		p.judge(verdict{bad: callsBad})
		if n := strings.Count(p.said.String(), "ok "); n != len(names) || n < 10 {
			h.t.Errorf("%d of the tests %q passed", n, names)
		}
	})
}

// TestSecureRefused: what a C program and its log learn if a connect succeeds or is refused, with keys in files and in the
// environment.
func TestSecureRefused(t *testing.T) {
	requireProvider(t)
	admitted := compile(t, "admitted")
	const (
		established = "event: DAT_CONNECTION_EVENT_ESTABLISHED"
		rejected    = "event: DAT_CONNECTION_EVENT_NON_PEER_REJECTED"
		timedOut    = "event: DAT_CONNECTION_EVENT_TIMED_OUT"
		refusedOpen = "dat_ia_open: DAT_INVALID_PARAMETER"
	)
	overSecure(t, func(h *hosts, k *keyring) {
		h.security[lab.A] = " key=" + k.key[lab.A] + " peers=" + newPeers(t, k.line(lab.B)+" services=1")
		h.configure(requireProvider(t))
		server := h.start(lab.A, admitted+" "+ia)
		server.awaitText(h.t, "listening", 1)
		strange, public := newKey(t)
		key, variable, credentials, loose := k.sources(t, lab.B)
		known := " peers=" + k.peers
		other := newPeers(t, fmt.Sprintf("%s from=%s", public, lab.A.Addr4()))
		for _, r := range []struct {
			name, options, env string
			call               string // qualifier, and timeout in seconds
			want, log          string
		}{
			{"admitted", key + known, "", "1 20", established, "security=secure"},
			{"another service", key + known, "", "2 20", rejected, "no service listens on the connection qualifier"},
			{"unknown to the server", " key=" + strange + known, "", "1 1", timedOut, "the peer does not answer our key"},
			{"another server", key + " peers=" + other, "", "1 1", timedOut, "the peer does not answer our key"},
			{"no line of the server", key, "", "1 20", "dat_ep_connect: DAT_INVALID_PARAMETER", "0 lines of the file of peers have the address 10.73.0.1"},
			{"plaintext", "", "", "1 20", rejected, "the peer accepts secure connections only"},
			{"insecure", " insecure", variable, "1 20", rejected, "plaintext mode because of insecure, although there is a key"},
			{"no key file", key + ".none", "", "1 20", refusedOpen, "no such file"},
			{"others may read the key", " key=" + loose, "", "1 20", refusedOpen, "chmod 600"},
			{"key in variable", known, variable, "1 20", established, "security=secure"},
			{"key in credentials", known, credentials, "1 20", established, "security=secure"},
		} {
			h.t.Run(r.name, func(t *testing.T) {
				h := h.in(t)
				h.security[lab.B] = r.options
				h.configure(requireProvider(t))
				line := fmt.Sprintf("env DATXDP_LOG=debug %s %s %s %s %s", r.env, admitted, ia, lab.A.Addr4(), r.call)
				h.start(lab.B, line).judge(verdict{want: []string{r.want, r.log}, bad: callsBad})
			})
		}
	})
}

// sources returns the key of a side as an option of dat.conf, as two assignments of the environment, and in a file that
// others may read.
func (k *keyring) sources(t *testing.T, s lab.Side) (option, variable, credentials, loose string) {
	t.Helper()
	text, err := os.ReadFile(k.key[s])
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "datxdp.key"), text, 0o600))
	loose = filepath.Join(dir, "loose")
	must(t, os.WriteFile(loose, text, 0o600))
	must(t, os.Chmod(loose, 0o644))
	return " key=" + k.key[s], "DATXDP_KEY=" + strings.TrimSpace(string(text)), "CREDENTIALS_DIRECTORY=" + dir, loose
}

package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServerSaysWhomItRefuses: the server prints one line for a client with a key that it does not know, and one for a
// client that expects another key, although both repeat their requests. The lines name the client and what to do.
func TestServerSaysWhomItRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	public := map[string]string{}
	for _, host := range []string{"server", "client", "stranger"} {
		public[host] = strings.TrimSpace(inProcess(t, "keygen", filepath.Join(dir, host)).stdout)
	}
	peers := filepath.Join(dir, "peers")
	if err := os.WriteFile(peers, []byte(public["client"]+" name=client\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const port = "17693"
	server := start(t, "server", "--ia", "udp:127.0.0.34", "--port", port, "--key", filepath.Join(dir, "server"), "--peers", peers)
	server.awaitLine(t, "^serving on .* in secure mode$")
	var want []string
	for _, tt := range []struct{ key, peer, line string }{
		{"stranger", "server", "127.0.0.35, key " + public["stranger"][:8] + "…: no line of the file of peers has this key: add a line if this host may connect"},
		{"client", "stranger", "127.0.0.35: the requester expects another key of this host"},
	} {
		line := "^datbench: refused " + regexp.QuoteMeta(tt.line)
		client := start(t, "run", "127.0.0.34", "--ia", "udp:127.0.0.35", "--port", port, "--key", filepath.Join(dir, tt.key), "--peer-key", public[tt.peer])
		server.awaitLine(t, line)
		client.wait(t)
		want = append(want, line)
	}
	if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(server.wait(t).stderr), "\n")
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
}

// TestRefusalLines: a line is repeated after half a minute, and other lines are a second apart. Warnings about the adapter
// pass, and nothing else does.
func TestRefusalLines(t *testing.T) {
	var out, other bytes.Buffer
	r := &refusals{slog.NewTextHandler(&other, nil), &refusalLines{w: &out}}
	begin := time.Now()
	log := func(after time.Duration, message string, attrs ...any) {
		record := slog.NewRecord(begin.Add(after), slog.LevelWarn, message, 0)
		record.Add(attrs...)
		if err := r.WithAttrs(nil).Handle(context.Background(), record); err != nil {
			t.Fatal(err)
		}
	}
	refuse := func(after time.Duration, peer string) {
		log(after, "dat: handshake refused", "peer", peer, "key", "0123456789", "name", "web", "hint", "do this")
	}
	for i := range 40 {
		refuse(time.Duration(i)*time.Second, "a")
	}
	refuse(40*time.Second, "b")
	refuse(40*time.Second+refusalPeriod/2, "a")
	refuse(40*time.Second+refusalPeriod, "c")
	var want string
	for _, peer := range []string{"a", "a", "b", "c"} {
		want += "datbench: refused " + peer + ", web, key 01234567…: do this\n"
	}
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	log(0, "dat: connection broke")
	if log(0, "dat: AF_XDP is unavailable, using UDP"); strings.Count(other.String(), "\n") != 1 {
		t.Errorf("passed on: %s", other.String())
	}
	if r.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("Info is logged")
	}
}

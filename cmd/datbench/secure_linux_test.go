package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecureRun: a server and a client in secure mode measure. The client names the server by its key, by its name or by
// its address. A host with another key, or in the other mode, is refused with a text that says what to do.
func TestSecureRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	public := map[string]string{}
	for _, host := range []string{"server", "client", "stranger", "reader", "single", "other"} {
		public[host] = strings.TrimSpace(inProcess(t, "keygen", file(host)).stdout)
	}
	for name, text := range map[string]string{
		"server.peers": public["client"] + " name=client\n" + public["reader"] + " memory=read\n" +
			public["single"] + " connections=1\n" + public["other"] + " services=7\n",
		"client.peers": public["server"] + " name=server from=127.0.0.31\n",
	} {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const port = "17691"
	server := start(t, "server", "--ia", "udp:127.0.0.31", "--port", port, "--key", file("server"), "--peers", file("server.peers"))
	server.awaitLine(t, "^serving on .* in secure mode$")
	plaintext := start(t, "server", "--ia", "udp:127.0.0.33", "--port", port)
	plaintext.awaitLine(t, "^serving on .*, mode udp$")
	for _, tt := range []struct {
		host string
		args []string
		want string // the error
	}{
		{"127.0.0.31", []string{"--key", file("client"), "--peer-key", public["server"]}, ""},
		{"127.0.0.31", []string{"--key", file("client"), "--peers", file("client.peers"), "--peer-key", "server"}, ""},
		{"127.0.0.31", []string{"--key", file("client"), "--peers", file("client.peers")}, ""},
		{"127.0.0.31", []string{"--key", file("stranger"), "--peer-key", public["server"]}, "did not answer the handshake: its file of peers"},
		{"127.0.0.31", []string{"--key", file("client"), "--peer-key", public["stranger"]}, "did not answer the handshake: its file of peers"},
		{"127.0.0.31", []string{"--key", file("client")}, "check --key, --peers and --peer-key: dat: DAT_INVALID_PARAMETER: the adapter is in secure mode, " +
			"and 0 lines of the file of peers have the address 127.0.0.31"},
		{"127.0.0.31", []string{"--key", file("reader"), "--peer-key", public["server"], "--op", "write"}, "memory= of the line of this host"},
		{"127.0.0.31", []string{"--key", file("single"), "--peer-key", public["server"], "--metric", "rate", "--connections", "2"}, "smaller connections= or bytes="},
		{"127.0.0.31", []string{"--key", file("other"), "--peer-key", public["server"]}, "services= without 0x64617462656e6368, which is datbench"},
		{"127.0.0.31", nil, "is in secure mode: give a key with --key"},
		{"127.0.0.31", []string{"--peer-key", public["server"]}, "adapter in plaintext mode"},
		{"127.0.0.33", []string{"--key", file("client"), "--peer-key", public["server"]}, "is in plaintext mode: start the server with --key"},
	} {
		args := []string{"run", tt.host, "--ia", "udp:127.0.0.32", "--port", port, "--duration", "50ms", "--warmup", "1ms", "--json", "-"}
		got := datbench(t, append(args, tt.args...)...)
		if tt.want != "" {
			if got.code != exitUsage || !strings.Contains(got.stderr, tt.want) {
				t.Errorf("%q: exit %d, want an error with %q:\n%s", tt.args, got.code, tt.want, got.stderr)
			}
			continue
		}
		if r := checkReport(t, got, []byte(got.stdout)); len(r.Results) != 1 || !r.Results[0].Secure {
			t.Errorf("%q: %+v", tt.args, r.Results)
		}
	}
}

// TestSecureRows: with --secure, the main job measures each DAT row in both modes, and leaves no key behind.
func TestSecureRows(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	got := datbench(t, "--secure", "--transport", "udp", "--op", "write,tcp", "--metric", "lat,bw", "--duration", "20ms", "--warmup", "1ms", "--json", "-")
	rows := map[string]int{}
	for _, r := range checkReport(t, got, []byte(got.stdout)).Results {
		rows[r.Label()+" "+r.Metric]++
	}
	for _, want := range []string{"write lat", "write+aes lat", "write bw", "write+aes bw", "tcp lat", "tcp bw"} {
		if rows[want] != 1 {
			t.Errorf("%d rows %q in %v", rows[want], want, rows)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

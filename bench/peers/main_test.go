package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files of testdata")

// mainVar is the variable that makes the test binary run as the program.
const mainVar = "DATXDP_PEERS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVar) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program returns a command that runs this program.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), mainVar+"=1")
	return cmd
}

// TestUsage: an invalid command gives a one-line error.
func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--repeat", "0"}, "peers: --repeat: 0 is not from 1 to 100\n"},
		{[]string{"--peer", "smoke", "--metric", "x"}, `peers: --peer: no "smoke": choose of ucx, libfabric, sockperf, iperf3, net, tls, quic-go, grpc; --metric: no "x": choose of lat, rate, bw` + "\n"},
		{[]string{"serve", "smoke", "127.0.0.1:1"}, "peers: no library \"smoke\": choose one of net, tls, quic-go, grpc, http, redis, raft\n"},
		{[]string{"serve", "net"}, "peers: accepts 2 arg(s), received 1\n"},
		{[]string{"run", "net", "127.0.0.1:1", "--size", "3"}, "peers: net: size 3 is not from 16 to 67108864\n"},
		{[]string{"services", "--repeat", "0", "--loss", "70", "--service", "smoke"}, "peers: --repeat: 0 is not from 1 to 100; --loss: 70 is not from 0 to 50; " +
			`--service: no "smoke": choose of gRPC unary, gRPC stream, HTTP/1.1, redis GET, raft commit` + "\n"},
		{[]string{"--nonsense"}, "peers: unknown flag: --nonsense\n"},
	} {
		var stdout, stderr strings.Builder
		if code := run(context.Background(), tt.args, &stdout, &stderr); code != exitUsage || stderr.String() != tt.want || stdout.Len() > 0 {
			t.Errorf("%v: got exit %d, %q, want %d, %q", tt.args, code, stderr.String(), exitUsage, tt.want)
		}
	}
}

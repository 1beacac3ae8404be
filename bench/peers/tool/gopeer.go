package tool

import (
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/datxdp/datxdp/internal/result"

	"github.com/datxdp/datxdp/bench/peers/gopeer"
)

// The libraries that this program contains.
var (
	Net  = &Tool{Name: gopeer.Net, Title: "Go net", version: runtime.Version}
	TLS  = &Tool{Name: gopeer.TLS, Title: "Go TLS 1.3", version: tlsVersion}
	QUIC = &Tool{Name: gopeer.QUIC, Title: "quic-go", version: module("github.com/quic-go/quic-go")}
	GRPC = &Tool{Name: gopeer.GRPC, Title: "gRPC-Go", version: module("google.golang.org/grpc")}
)

var goPorts = map[*Tool]Port{Net: {"tcp", 7801}, QUIC: {"udp", 7802}, GRPC: {"tcp", 7803}, TLS: {"tcp", 7804}}

// tlsVersion returns the version of Go and the cipher suite.
func tlsVersion() string {
	suite, err := gopeer.TLSCipher()
	if err != nil {
		return ""
	}
	return runtime.Version() + " " + suite
}

// module returns a function that returns the version of a library that this program contains.
func module(path string) func() string {
	return func() string {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			return ""
		}
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
		return ""
	}
}

// GoTests returns the tests of Go libraries, whose goroutines block. self is the path of this program.
func GoTests(self, metric string) []Test {
	test := func(t *Tool, what string, flags ...string) Test { return goTest(self, t, what, metric, flags...) }
	switch metric {
	case result.Latency:
		return []Test{test(Net, "TCP"), test(TLS, "over TCP"), test(QUIC, "stream"), test(GRPC, "stream"), test(GRPC, "unary call", "--unary")}
	case result.Rate:
		return []Test{
			test(Net, "TCP, a write for each"), test(Net, "TCP, buffered", "--buffered"),
			test(QUIC, "stream, a write for each"), test(QUIC, "stream, buffered", "--buffered"),
			test(GRPC, "stream"),
		}
	}
	return []Test{test(Net, "TCP"), test(TLS, "over TCP"), test(QUIC, "stream"), test(GRPC, "stream")}
}

func goTest(self string, t *Tool, what, metric string, flags ...string) Test {
	size, secure, against := int64(64), t == TLS || t == QUIC, result.Send
	if metric == result.Bandwidth {
		size = 1 << 20
	}
	if metric == result.Bandwidth && secure { // the target of secure mode is that of writes
		against = result.Write
	}
	port := goPorts[t]
	addr := func(j Job) string { return net.JoinHostPort(j.Host, strconv.Itoa(int(port.Number))) }
	return Test{
		Tool: t, What: what, Metric: metric, Size: size, Against: against, Secure: secure, Port: port,
		Server: func(j Job) Command { return Command{Args: []string{self, "serve", t.Name, addr(j)}} },
		Client: func(j Job) Command {
			args := []string{self, "run", t.Name, addr(j), "--metric", metric, "--size", strconv.FormatInt(size, 10), "--duration", j.Duration.String()}
			return Command{Args: slices.Concat(args, flags)}
		},
		Parse: parseGo,
	}
}

// parseGo parses the output of this program.
func parseGo(out string, r *result.Result) error {
	var got result.Result
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		return fmt.Errorf("no figures in %q", LastLine(out))
	}
	r.P50, r.P99, r.MsgsPerSec, r.Gbps, r.Samples = got.P50, got.P99, got.MsgsPerSec, got.Gbps, got.Samples
	return nil
}

package gopeer

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// limit is far above the time of any run in this test.
const limit = 30 * time.Second

// serve starts a server that runs until the end of the test.
func serve(t *testing.T, name, addr string) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), limit)
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- Serve(ctx, name, End{Addr: addr}, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Fatalf("server: %v", err)
	}
	return ctx
}

// client returns what a client needs to reach a server. A client of raft is a node, with an address of its own.
func client(l library, server string) End {
	if l.name == Raft {
		return End{Addr: "127.0.0.1:17800," + server}
	}
	return End{Addr: server}
}

// TestMemory: a library measures itself within one process, or says why it cannot.
func TestMemory(t *testing.T) {
	for _, l := range libraries {
		_, err := Run(t.Context(), l.name, End{Addr: "memory", Adapter: Memory}, Ask{Metric: result.Latency, Size: 64, Duration: 100 * time.Millisecond})
		if want := map[string]string{QUIC: "without an adapter", HTTP: "read deadlines"}[l.name]; want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", l.name, err, want)
			}
		} else if err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
	}
}

// TestStreams: a service serves over streams.
func TestStreams(t *testing.T) {
	ctx, e := t.Context(), End{Addr: "127.80.0.1:7810", Adapter: "udp:127.80.0.1"}
	ctx, stop := context.WithTimeout(ctx, limit)
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- Serve(ctx, HTTP, e, func() { close(ready) }) }()
	<-ready
	e.Adapter = "udp:127.80.0.2"
	if f, err := Run(ctx, HTTP, e, Ask{Metric: result.Latency, Size: 64, Duration: 100 * time.Millisecond}); err != nil || f.Samples == 0 {
		t.Errorf("got %+v, %v", f, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestMeasure: every library measures every metric that it supports.
func TestMeasure(t *testing.T) {
	for i, l := range libraries {
		addr := fmt.Sprintf("127.0.0.1:%d", 17801+i)
		ctx := serve(t, l.name, addr)
		asks := []Ask{{Metric: result.Latency, Size: 64}}
		if !l.requests {
			asks = append(asks,
				Ask{Metric: result.Rate, Size: 64},
				Ask{Metric: result.Rate, Size: 64, Buffered: true},
				Ask{Metric: result.Bandwidth, Size: 1 << 20})
		}
		if l.name == GRPC {
			asks = append(asks, Ask{Metric: result.Latency, Size: 64, Unary: true})
		}
		for _, a := range asks {
			a.Duration, a.Warmup = 500*time.Millisecond, 5*time.Millisecond
			t.Run(fmt.Sprintf("%s %+v", l.name, a), func(t *testing.T) {
				r, err := Run(ctx, l.name, client(l, addr), a)
				if err != nil {
					t.Fatal(err)
				}
				if a.echoed() && (r.Operations < r.Samples || r.CPU <= 0) {
					t.Errorf("got %d operations, %g µs of CPU time", r.Operations, r.CPU)
				}
				if !r.Valid || r.Figure() <= 0 || r.Samples <= 0 || r.MsgsPerSec <= 0 {
					t.Errorf("got %+v", r)
				}
				if a.Metric == result.Latency && *r.P99 < *r.P50 {
					t.Errorf("got p50 %g, p99 %g", *r.P50, *r.P99)
				}
			})
		}
	}
}

// TestTLSCipher: two ends agree on a cipher suite of TLS 1.3 (RFC 8446 appendix B.4).
func TestTLSCipher(t *testing.T) {
	got, err := TLSCipher()
	if want := []string{"TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"}; !slices.Contains(want, got) {
		t.Errorf("got %q, %v, want one of %v", got, err, want)
	}
}

func TestErrors(t *testing.T) {
	good := Ask{Metric: result.Latency, Size: 64, Duration: time.Second}
	for _, tt := range []struct {
		name, library string
		ask           Ask
		want          string
	}{
		{"library", "smoke", good, `no library "smoke": choose one of net, tls, quic-go, grpc, http, redis, raft`},
		{"nobody there", Net, good, "connection refused"},
		{"metric", Net, Ask{Metric: "x", Size: 64, Duration: 1}, `metric "x" is not lat, rate or bw`},
		{"size", QUIC, Ask{Metric: result.Rate, Size: 8, Duration: 1}, "size 8 is not from 16 to"},
		{"rate of requests", HTTP, Ask{Metric: result.Rate, Size: 64, Duration: 1}, "measure lat"},
		{"unary", GRPC, Ask{Metric: result.Rate, Size: 64, Duration: 1, Unary: true}, "measure lat"},
		{"no time", Net, Ask{Metric: result.Rate, Size: 64}, "measured time 0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Run(t.Context(), tt.library, End{Addr: "127.0.0.1:17899"}, tt.ask)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if err := Serve(t.Context(), Net, End{Addr: "127.0.0.1:-1"}, func() {}); err == nil {
		t.Error("served at no port")
	}
}

// TestNobodyHangs: a run ends with its context, whatever the server does.
func TestNobodyHangs(t *testing.T) {
	for i, l := range libraries {
		addr := fmt.Sprintf("127.0.0.1:%d", 17811+i)
		serve(t, l.name, addr)
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		start := time.Now()
		_, err := Run(ctx, l.name, client(l, addr), Ask{Metric: result.Latency, Size: 64, Duration: time.Hour})
		if took := time.Since(start); err == nil || took > limit/2 {
			t.Errorf("%s: got %v after %s", l.name, err, took)
		}
	}
}

// TestHeader: a server refuses an invalid header.
func TestHeader(t *testing.T) {
	for text, want := range map[string]string{"": "EOF", "\x00\x00": "EOF", "\x00\xff\xff\xff\xff": "messages of 4294967295 bytes", "\x01\x00\x00\x00\x01": "messages of 1 bytes"} {
		if err := serveBytes(bytes.NewBufferString(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

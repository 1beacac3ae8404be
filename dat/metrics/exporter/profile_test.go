package exporter_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat/metrics/exporter"
)

// No page records for longer than its limit, whatever the client asks for.
func TestProfilesAreBounded(t *testing.T) {
	s := httptest.NewServer(exporter.New().Handler())
	defer s.Close()
	for _, page := range []string{"trace", "profile", "heap", "goroutine", "mutex"} {
		for _, seconds := range []string{"100000", "21", "1e300", "NaN", "x"} {
			resp, err := client.Get(s.URL + "/debug/pprof/" + page + "?seconds=" + seconds)
			ok(t, err)
			ok(t, resp.Body.Close())
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s for %s s: %s", page, seconds, resp.Status)
			}
		}
	}
	resp, err := client.Get(s.URL + "/debug/pprof/trace?seconds=0.05")
	ok(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(string(b), "go 1.") {
		t.Errorf("a short trace: %s, %.10q, %v", resp.Status, b, err)
	}
}

// A request with large headers is refused, so that clients that send them slowly occupy little memory.
func TestHeadersAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- exporter.New().Serve(ctx, l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	ok(t, err)
	defer c.Close()
	ok(t, c.SetDeadline(time.Now().Add(patience)))
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 64<<10)) // fails when the server has refused
	answer := make([]byte, 64)
	if n, _ := io.ReadFull(c, answer); !strings.Contains(string(answer[:n]), "431") {
		t.Errorf("%q", answer[:n])
	}
	stop()
	ok(t, <-served)
}

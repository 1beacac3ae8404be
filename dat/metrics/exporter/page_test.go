package exporter_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat/metrics/exporter"
)

// fetch requests a page of metrics with some headers, given as name, value and so on.
func fetch(h http.Handler, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestMetricsPageIsShared: requests at the same time and within a second get one page, and none is refused. The page
// has the processor time and the allocated memory of the process, so two collections make different pages.
func TestMetricsPageIsShared(t *testing.T) {
	e := exporter.New()
	ia := open(t, 0, freePort(t))
	closing(t, ia)
	defer show(t, e, "a", ia)()
	h := e.Handler()
	var mu sync.Mutex
	pages := map[string]bool{}
	var readers sync.WaitGroup
	start := time.Now()
	for range 64 {
		readers.Go(func() {
			for range 20 {
				w := fetch(h)
				mu.Lock()
				pages[w.Body.String()] = true
				mu.Unlock()
				if w.Code != http.StatusOK {
					t.Errorf("status %d: %s", w.Code, w.Body)
					return
				}
			}
		})
	}
	readers.Wait()
	if seconds := 1 + int(time.Since(start)/time.Second); len(pages) > seconds {
		t.Errorf("%d pages in %d s", len(pages), seconds)
	}
	first := fetch(h).Body.String()
	for fetch(h).Body.String() == first {
		if t.Context().Err() != nil || time.Since(start) > patience {
			t.Fatal("the page stays the same")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestMetricsPageAsAskedFor: a kept page has the format and the encoding that each request asks for.
func TestMetricsPageAsAskedFor(t *testing.T) {
	h := exporter.New().Handler()
	const text, protobuf = "text/plain; version=0.0.4", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
	for range 2 { // the second time the pages are kept ones
		for _, c := range []struct{ accept, encoding, wantType, wantEncoding string }{
			{"", "", text, ""},
			{"*/*", "identity", text, ""},
			{"", "gzip", text, "gzip"},
			{text, "deflate, GZIP;q=0.5", text, "gzip"},
			{text, "gzip;q=0", text, ""},
			{text, "br, gzip; q=0.0, *", text, ""},
			{protobuf, "", protobuf, ""},
			{protobuf + ", " + text + ";q=0.5", "gzip", protobuf, "gzip"},
			{"image/png", "gzip;q=x", text, ""},
		} {
			w := fetch(h, "Accept", c.accept, "Accept-Encoding", c.encoding)
			header := w.Result().Header
			if got := header.Get("Content-Type"); !strings.HasPrefix(got, c.wantType) || header.Get("Content-Encoding") != c.wantEncoding {
				t.Errorf("%+v: type %q, encoding %q", c, got, header.Get("Content-Encoding"))
			}
			if got := header.Values("Vary"); !slices.Equal(got, []string{"Accept", "Accept-Encoding"}) {
				t.Errorf("%+v: Vary: %q", c, got)
			}
			var body io.Reader = w.Body
			if c.wantEncoding == "gzip" {
				var err error
				body, err = gzip.NewReader(w.Body)
				ok(t, err)
			}
			got, err := io.ReadAll(body)
			ok(t, err)
			if !bytes.Contains(got, []byte("process_cpu_seconds_total")) || bytes.HasPrefix(got, []byte("# HELP")) != (c.wantType == text) {
				t.Errorf("%+v: the page is %q", c, got)
			}
		}
	}
}

func BenchmarkMetricsPage(b *testing.B) {
	e := exporter.New()
	ia := open(b, 0, freePort(b))
	defer func() { _ = ia.Close() }() // the benchmark is over
	defer show(b, e, "a", ia)()
	h := e.Handler()
	for _, encoding := range []string{"identity", "gzip"} {
		b.Run(encoding, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fetch(h, "Accept-Encoding", encoding)
			}
		})
	}
}

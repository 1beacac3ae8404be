package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// Limits of the page of metrics.
const (
	scrapeInterval = time.Second      // a collection is served for so long
	scrapeTimeout  = 10 * time.Second // the maximum time that a request waits for a page
)

// pageKey identifies a form of the page of metrics. There are as many as formats, escaping schemes and encodings.
type pageKey struct {
	format expfmt.Format
	gzip   bool
}

// page is an answer to a request for metrics. Requests share it, so it does not change.
type page struct {
	status      int
	contentType string
	body        []byte
}

// metricsPage serves the metrics of an exporter. It collects them at most once in scrapeInterval, and also after an
// adapter was added or removed. It encodes a collection once for each form of the page, and keeps these pages until the
// next collection. Any goroutine may call ServeHTTP.
type metricsPage struct {
	exporter *Exporter

	slot      chan struct{}                            // has a token while a goroutine uses the fields below
	collected time.Time                                // begin of the last collection
	adapters  uint64                                   // Exporter.changes at the last collection
	encode    func(w io.Writer, f expfmt.Format) error // encodes the last collection
	pages     map[pageKey]*page                        // of the last collection
}

// ServeHTTP implements http.Handler.
func (m *metricsPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := pageKey{expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...), acceptsGzip(r.Header)}
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
	defer cancel()
	p := m.get(ctx, key)
	if p == nil {
		http.Error(w, fmt.Sprintf("collecting the metrics takes longer than %v", scrapeTimeout), http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h["Vary"] = []string{"Accept", "Accept-Encoding"}
	h.Set("Content-Type", p.contentType)
	h.Set("Content-Length", strconv.Itoa(len(p.body)))
	if key.gzip {
		h.Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body) // fails if the client has disconnected
}

// get returns the page in the form key. It returns nil if ctx is done before the page is ready. A collection goes on
// without the request that has begun it, because other requests wait for it.
func (m *metricsPage) get(ctx context.Context, key pageKey) *page {
	select {
	case m.slot <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	if p := m.pages[key]; p != nil && m.isFresh() {
		<-m.slot
		return p
	}
	made := make(chan *page, 1)
	go func() {
		defer func() { <-m.slot }()
		made <- m.makePage(key)
	}()
	select {
	case p := <-made:
		return p
	case <-ctx.Done():
		return nil
	}
}

// isFresh reports whether the last collection may be served. The caller holds the slot.
func (m *metricsPage) isFresh() bool {
	return m.encode != nil && time.Since(m.collected) < scrapeInterval && m.adapters == m.exporter.changes.Load()
}

// makePage encodes a page and keeps it. Before that it collects the metrics, unless the last collection is fresh. The
// caller holds the slot.
func (m *metricsPage) makePage(key pageKey) *page {
	if !m.isFresh() {
		m.collected, m.adapters, m.pages = time.Now(), m.exporter.changes.Load(), map[pageKey]*page{}
		m.encode = collect(m.exporter.registry)
	}
	p := &page{status: http.StatusOK, contentType: string(key.format)}
	body, err := key.compress(m.encode)
	if err != nil {
		p.status, p.contentType = http.StatusInternalServerError, "text/plain; charset=utf-8"
		body, _ = key.compress(func(w io.Writer, _ expfmt.Format) error { // cannot fail
			_, err := fmt.Fprintf(w, "An error has occurred while serving metrics:\n\n%v\n", err)
			return err
		})
	}
	p.body = body
	m.pages[key] = p
	return p
}

// collect collects the metrics. It returns a function that encodes them, or returns the error of the collection.
func collect(from prometheus.Gatherer) (encode func(w io.Writer, f expfmt.Format) error) {
	families, err := from.Gather()
	return func(w io.Writer, f expfmt.Format) error {
		if err != nil {
			return err
		}
		enc := expfmt.NewEncoder(w, f)
		for _, family := range families {
			if err := enc.Encode(family); err != nil {
				return err
			}
		}
		return nil
	}
}

// compress returns what write writes, compressed if the form of the page asks for it.
func (k pageKey) compress(write func(w io.Writer, f expfmt.Format) error) ([]byte, error) {
	var body bytes.Buffer
	if !k.gzip {
		err := write(&body, k.format)
		return body.Bytes(), err
	}
	z := gzip.NewWriter(&body)
	err := write(z, k.format)
	if err == nil {
		err = z.Close()
	}
	return body.Bytes(), err
}

// acceptsGzip reports whether a request accepts the content encoding gzip by its name (RFC 9110 §12.5.3).
func acceptsGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, weight, weighted := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		_, value, _ := strings.Cut(weight, "=")
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return !weighted || err == nil && q > 0
	}
	return false
}

package exporter

import (
	"encoding/json"
	"expvar"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// maxPages is the maximum number of concurrent debug pages.
const maxPages = 8

// walkInterval is the minimum time between two answers to requests for /debug/connections. Without this limit, clients
// could slow the data path, because each answer visits every connection of every adapter.
const walkInterval = time.Second

const index = `<!DOCTYPE html>
<title>datxdp</title>
<h1>datxdp</h1>
<ul>
<li><a href="/metrics">/metrics</a>: for Prometheus</li>
<li><a href="/debug/connections">/debug/connections</a>: every connection; <a href="/debug/connections?format=json">as JSON</a></li>
<li><a href="/debug/vars">/debug/vars</a>: the process's variables</li>
<li><a href="/debug/pprof/">/debug/pprof/</a>: profiles</li>
</ul>
`

// Handler returns a handler for scrapes (/metrics) and debug pages: /debug/connections, /debug/vars (expvar),
// /debug/pprof/, and an index at /.
//
// Three limits protect the process. Metrics are collected at most once a second, and also after an adapter was added or
// removed: requests at the same time share one collection, and its page is served again for a second. A request is
// answered with status 503 if the collection takes longer than 10 seconds. A query is ignored: the page has all
// metrics. While 8 debug pages are in progress, further requests for debug pages are answered with status 503. Pages
// of connections are written one at a time, and each begins at least a second after the end of the previous page;
// other requests for such pages wait. A profile or a trace takes at most 20 seconds, and a trace has at most 16 MiB.
//
// Profiles and addresses are confidential: serve them only to clients that may see them.
func (e *Exporter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", &e.metrics)
	mux.Handle("/debug/", e.limitConcurrent(e.debugPages()))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, index)
	})
	return mux
}

func (e *Exporter) debugPages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/connections", e.limitRate(e.writeConnections))
	mux.Handle("GET /debug/vars", expvar.Handler())
	addProfiles(mux)
	return mux
}

// limitConcurrent limits the number of concurrent pages to maxPages. It answers further requests with status 503.
func (e *Exporter) limitConcurrent(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case e.debug <- struct{}{}:
			defer func() { <-e.debug }()
			pages.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("%d debug pages are in progress: try again later", maxPages), http.StatusServiceUnavailable)
		}
	})
}

// limitRate returns a handler that limits the rate of the handler page. The returned handler calls page for one request
// at a time, at least walkInterval after the end of the previous call. Other requests wait.
func (e *Exporter) limitRate(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case e.pageSlot <- struct{}{}:
			defer func() { <-e.pageSlot }()
		case <-r.Context().Done():
			return
		}
		select {
		case <-time.After(time.Until(e.lastPageEnd.Add(walkInterval))):
			defer func() { e.lastPageEnd = time.Now() }()
			page(w, r)
		case <-r.Context().Done():
		}
	}
}

// writeConnections writes every connection of every adapter, as text or, with format=json, as JSON. It writes the row
// of a connection as soon as it has read that connection from the adapter. It ignores write errors, because such an
// error means that the client has gone.
func (e *Exporter) writeConnections(w http.ResponseWriter, r *http.Request) {
	shown := e.adapters()
	names := slices.Sorted(maps.Keys(shown))
	if r.URL.Query().Get("format") == "json" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{")
		for i, name := range names {
			writeJSON(w, i > 0, name, shown[name])
		}
		_, _ = io.WriteString(w, "}\n")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, name := range names {
		fmt.Fprintf(w, "%s\n", name)
		if err := shown[name].Dump(w); err != nil {
			fmt.Fprintln(w, err)
		}
		fmt.Fprintln(w)
	}
}

// writeJSON writes a member of a JSON object: the name of an adapter and an array of its connections. If the adapter is
// closed meanwhile, the array ends early.
func writeJSON(w io.Writer, comma bool, name string, ia *dat.IA) {
	if comma {
		_, _ = io.WriteString(w, ",")
	}
	key, _ := json.Marshal(name) // cannot fail for a string
	fmt.Fprintf(w, "%s:[", key)
	rows, first := json.NewEncoder(w), true
	_ = ia.EachConnection(func(c *dat.ConnInfo) error { // fails if the adapter is closed or the client has disconnected
		if !first {
			_, _ = io.WriteString(w, ",")
		}
		first = false
		return rows.Encode(c)
	})
	_, _ = io.WriteString(w, "]")
}

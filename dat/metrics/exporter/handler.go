package exporter

import (
	"encoding/json"
	"expvar"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/pprof"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/datxdp/datxdp/dat"
)

// Bounds of scrapes and of debug pages: how many at one time, and how long a scrape may take.
const (
	maxScrapes    = 8
	scrapeTimeout = 10 * time.Second
	maxPages      = 8
)

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

// Handler answers scrapes (/metrics) and shows what helps to find a fault: /debug/connections, /debug/vars
// (expvar), /debug/pprof/, and at / a page that links them. Of each kind it makes a few pages at one time and
// answers 503 beyond. Profiles and addresses are not for strangers: serve it where only those come who may see
// them.
func (e *Exporter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout}))
	mux.Handle("/debug/", e.bounded(e.debugPages()))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, index)
	})
	return mux
}

func (e *Exporter) debugPages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/connections", e.connections)
	mux.Handle("GET /debug/vars", expvar.Handler())
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// bounded makes no more than maxPages pages at one time.
func (e *Exporter) bounded(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case e.debug <- struct{}{}:
			defer func() { <-e.debug }()
			pages.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("%d debug pages are being made: try again later", maxPages), http.StatusServiceUnavailable)
		}
	})
}

// connections shows every connection of every adapter, as text or, with format=json, for programs.
func (e *Exporter) connections(w http.ResponseWriter, r *http.Request) {
	shown := e.adapters()
	if r.URL.Query().Get("format") == "json" {
		w.Header().Set("Content-Type", "application/json")
		all := make(map[string][]dat.ConnInfo, len(shown))
		for name, ia := range shown {
			if rows, err := ia.Connections(); err == nil { // else it is closed
				all[name] = rows
			}
		}
		_ = json.NewEncoder(w).Encode(all) // the client is gone
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		fmt.Fprintf(w, "%s\n", name)
		if err := shown[name].Dump(w); err != nil {
			fmt.Fprintln(w, err)
		}
		fmt.Fprintln(w)
	}
}

package metrics

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

// Bounds of a scrape: how many at one time, and how long one may take.
const (
	maxScrapes    = 8
	scrapeTimeout = 10 * time.Second
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
// (expvar), /debug/pprof/, and at / a page that links them. Profiles and addresses are not for strangers:
// serve it where only those come who may see them.
func (e *Exporter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout}))
	mux.HandleFunc("/debug/connections", e.connections)
	mux.Handle("/debug/vars", expvar.Handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, index)
	})
	return mux
}

// connections shows every connection of every adapter, as text or, with format=json, for programs.
func (e *Exporter) connections(w http.ResponseWriter, r *http.Request) {
	shown := e.adapters()
	if r.FormValue("format") == "json" {
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

package exporter

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
)

const (
	// maxProfile is the longest time that a profile or a trace of the process may take. It leaves a third of writeTimeout
	// to send the page.
	maxProfile = 20 * time.Second
	// maxTrace is the size in bytes of the largest execution trace, which is kept in memory until it is complete. A busy
	// process makes some 6 MB/s.
	maxTrace = 16 << 20
)

// bounded returns a handler that refuses a request for a profile that takes longer than maxProfile.
func bounded(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s := r.FormValue("seconds"); s != "" {
			if d, err := strconv.ParseFloat(s, 64); err != nil || !(d <= maxProfile.Seconds()) {
				http.Error(w, fmt.Sprintf("seconds=%.20q: a profile takes %v at most", s, maxProfile), http.StatusBadRequest)
				return
			}
		}
		page(w, r)
	}
}

// writeTrace records an execution trace and then writes it. The page of net/http/pprof writes while it records, and the
// runtime keeps in memory what the client does not read.
func writeTrace(w http.ResponseWriter, r *http.Request) {
	d, _ := strconv.ParseFloat(r.FormValue("seconds"), 64) // bounded has checked it
	if d <= 0 {
		d = 1
	}
	b := limitedBuffer{full: make(chan struct{})}
	if err := trace.Start(&b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	select {
	case <-time.After(time.Duration(d * float64(time.Second))):
	case <-b.full:
	case <-r.Context().Done():
	}
	trace.Stop()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="trace"`)
	_, _ = w.Write(b.data.Bytes()) // an error means that the client has gone
}

// limitedBuffer keeps the first maxTrace bytes that are written. It closes full when there are more.
type limitedBuffer struct {
	data bytes.Buffer
	once sync.Once
	full chan struct{}
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := len(p)
	if room := maxTrace - b.data.Len(); n > room {
		p = p[:room]
		b.once.Do(func() { close(b.full) })
	}
	b.data.Write(p)
	return n, nil
}

// addProfiles adds the pages of net/http/pprof, bounded in time and memory.
func addProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", bounded(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", bounded(profile))
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxSymbols)
		pprof.Symbol(w, r)
	})
	mux.HandleFunc("GET /debug/pprof/trace", bounded(writeTrace))
}

// maxSymbols is the size in bytes of the largest list of addresses to look up: 60,000 addresses.
const maxSymbols = 1 << 20

// profile is the CPU profile of net/http/pprof, whose default of 30 s is too long.
func profile(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("seconds") == "" {
		q := r.URL.Query()
		q.Set("seconds", strconv.Itoa(int(maxProfile.Seconds())))
		r = r.Clone(r.Context())
		r.URL.RawQuery, r.Form = q.Encode(), nil
	}
	pprof.Profile(w, r)
}

package exporter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics"
)

// Exporter serves the metrics of the process and of the adapters that Add adds. Any goroutine may call the methods.
type Exporter struct {
	registry    *prometheus.Registry
	debug       chan struct{} // has one token for each debug page in progress
	pageSlot    chan struct{} // has a token while a page of connections waits or is written; guards lastPageEnd
	lastPageEnd time.Time     // end of the last page of connections
	metrics     metricsPage
	changes     atomic.Uint64 // number of adapters added and removed

	mu    sync.Mutex // guards shown
	shown map[string]*dat.IA
}

// New makes an Exporter without adapters.
func New() *Exporter {
	e := &Exporter{registry: prometheus.NewRegistry(), debug: make(chan struct{}, maxPages), pageSlot: make(chan struct{}, 1),
		shown: map[string]*dat.IA{}}
	e.metrics.exporter, e.metrics.slot = e, make(chan struct{}, 1)
	e.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return e
}

// Add exports the metrics of an adapter until the returned function, remove, is called. Further calls of that function
// do nothing. The metrics of the adapter have the label ia with the value name. Add returns an error if the name is in
// use or not valid UTF-8. All opens of an adapter have the same counters, so add only one open.
func (e *Exporter) Add(name string, ia *dat.IA) (remove func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.shown[name]; ok {
		return nil, fmt.Errorf("exporter: an adapter is exported as %q already: remove it first, or use another name", name)
	}
	c := metrics.NewCollector(name, ia)
	if err := e.registry.Register(c); err != nil {
		return nil, fmt.Errorf("exporter: an adapter cannot be exported as %q, use another name: %w", name, err)
	}
	e.shown[name] = ia
	e.changes.Add(1)
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.shown, name)
		e.registry.Unregister(c)
		e.changes.Add(1)
	}), nil
}

// adapters returns the exported adapters by name.
func (e *Exporter) adapters() map[string]*dat.IA {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.shown)
}

// Timeouts of the HTTP connection of a client. While a profile is recorded, writeTimeout is extended by the duration of
// the recording.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxHeader is the size in bytes of the largest request header. The default of net/http is 1 MB.
	maxHeader = 16 << 10
)

// Serve serves the pages of Handler on a listener until ctx is done. It closes the listener.
func (e *Exporter) Serve(ctx context.Context, l net.Listener) error {
	var limit connLimit
	s := &http.Server{Handler: e.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnState: limit.onState}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

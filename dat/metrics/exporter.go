package metrics

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/datxdp/datxdp/dat"
)

// Exporter serves the metrics of a changing set of adapters, and of the process.
type Exporter struct{ registry *prometheus.Registry }

// NewExporter makes an exporter that shows the process and no adapter yet.
func NewExporter() *Exporter {
	e := &Exporter{prometheus.NewRegistry()}
	e.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return e
}

// Add shows an adapter under its name until the function it returns is called. An adapter that is
// shown already, under another handle, is shown once.
func (e *Exporter) Add(name string, ia *dat.IA) (remove func()) {
	c := NewCollector(name, ia)
	if err := e.registry.Register(c); err != nil {
		return func() {}
	}
	return func() { e.registry.Unregister(c) }
}

// Handler answers scrapes.
func (e *Exporter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{}))
	return mux
}

// How long a scraper may dawdle.
const headerTimeout = 5 * time.Second

// Serve answers scrapes on a listener until the context ends, and closes it.
func (e *Exporter) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: e.Handler(), ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

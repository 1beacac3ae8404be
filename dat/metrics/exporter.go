package metrics

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/datxdp/datxdp/dat"
)

// Exporter serves the metrics of a changing set of adapters, and of the process. Any goroutine may call
// its methods.
type Exporter struct {
	registry *prometheus.Registry

	mu    sync.Mutex // guards shown
	shown map[string]*dat.IA
}

// NewExporter makes an exporter that shows the process and no adapter yet.
func NewExporter() *Exporter {
	e := &Exporter{registry: prometheus.NewRegistry(), shown: map[string]*dat.IA{}}
	e.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return e
}

// Add shows an adapter under its name until the function it returns is called. An adapter that is
// shown already, under another handle, is shown once.
func (e *Exporter) Add(name string, ia *dat.IA) (remove func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := NewCollector(name, ia)
	if err := e.registry.Register(c); err != nil {
		return func() {}
	}
	e.shown[name] = ia
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.shown, name)
		e.registry.Unregister(c)
	})
}

// adapters is what is shown now.
func (e *Exporter) adapters() map[string]*dat.IA {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.shown)
}

// headerTimeout is how long a client may take to ask.
const headerTimeout = 5 * time.Second

// Serve answers on a listener until the context ends, and closes it. The pages are those of Handler.
func (e *Exporter) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: e.Handler(), ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

package workload

import (
	"slices"
	"sync"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics/exporter"
)

// exported holds the adapters whose metrics are served. If a target and an initiator have opened the same adapter, its
// counters are exported only once.
type exported struct {
	exporter *exporter.Exporter

	mu   sync.Mutex
	open map[string][]*exportedIA // by name; the first one is exported
}

// exportedIA is one open adapter.
type exportedIA struct {
	ia     *dat.IA
	remove func() // nil while another open of the adapter is exported
}

func newExported() *exported {
	return &exported{exporter: exporter.New(), open: map[string][]*exportedIA{}}
}

// add exports an adapter until the returned function is called.
func (s *exported) add(name string, ia *dat.IA) (hide func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &exportedIA{ia: ia}
	s.open[name] = append(s.open[name], o)
	if err := s.exportFirst(name); err != nil {
		s.open[name] = s.open[name][:len(s.open[name])-1]
		return nil, err
	}
	return func() { s.hide(name, o) }, nil
}

func (s *exported) hide(name string, o *exportedIA) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[name] = slices.DeleteFunc(s.open[name], func(other *exportedIA) bool { return other == o })
	if o.remove != nil {
		o.remove()
		_ = s.exportFirst(name) // cannot fail: the name is free and was valid
	}
}

// exportFirst exports the first open adapter of a name.
func (s *exported) exportFirst(name string) (err error) {
	if all := s.open[name]; len(all) > 0 && all[0].remove == nil {
		all[0].remove, err = s.exporter.Add(name, all[0].ia)
	}
	return err
}

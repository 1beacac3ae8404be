package workload

import (
	"slices"
	"sync"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics/exporter"
)

// shown are the adapters in the metrics. One that a target and an initiator have open, each for itself, is
// shown once: the counters are the same.
type shown struct {
	exporter *exporter.Exporter

	mu   sync.Mutex
	open map[string][]*showing // by name; the first is the one that is shown
}

// showing is one open of an adapter.
type showing struct {
	ia     *dat.IA
	remove func() // nil while another is shown
}

func newShown() *shown { return &shown{exporter: exporter.New(), open: map[string][]*showing{}} }

// add shows an adapter until hide is called.
func (s *shown) add(name string, ia *dat.IA) (hide func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &showing{ia: ia}
	s.open[name] = append(s.open[name], o)
	if err := s.lead(name); err != nil {
		s.open[name] = s.open[name][:len(s.open[name])-1]
		return nil, err
	}
	return func() { s.hide(name, o) }, nil
}

func (s *shown) hide(name string, o *showing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[name] = slices.DeleteFunc(s.open[name], func(other *showing) bool { return other == o })
	if o.remove != nil {
		o.remove()
		_ = s.lead(name) // the name is free, and was good
	}
}

// lead has the first open of a name shown.
func (s *shown) lead(name string) (err error) {
	if all := s.open[name]; len(all) > 0 && all[0].remove == nil {
		all[0].remove, err = s.exporter.Add(name, all[0].ia)
	}
	return err
}

package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/dat"
)

// Collector is a prometheus.Collector for one adapter. It reads the adapter's counters at most once a second. A scrape
// less than one second after a read gets the values of that read. A read stops each engine for microseconds at a time.
// Without scrapes a Collector costs nothing. Once the adapter is closed, a Collector exports no metrics. Any goroutine
// may call the methods.
type Collector struct {
	ia        *dat.IA
	descs     []*prometheus.Desc        // the descriptions of families, in the same order
	readStats func() (dat.Stats, error) // IA.Stats; tests replace it

	// mu guards the fields below. It is held while readStats runs, so that concurrent scrapes share the result.
	mu        sync.Mutex
	lastStats dat.Stats
	readAt    time.Time // end of the last read; zero before the first read
}

// statsInterval is the minimum time from the end of a read of the counters to the next read. A read visits every
// connection. Without this limit, a local user could slow the data path with frequent scrapes.
const statsInterval = time.Second

var _ prometheus.Collector = (*Collector)(nil)

// prefix is the prefix of the names of all metrics.
const prefix = "datxdp_"

// NewCollector makes a Collector for ia. Every metric has the label ia with the value name.
func NewCollector(name string, ia *dat.IA) *Collector {
	c := &Collector{ia: ia, readStats: ia.Stats}
	for i := range families {
		f := &families[i]
		c.descs = append(c.descs, prometheus.NewDesc(prefix+f.name, f.help, f.labels, prometheus.Labels{"ia": name}))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It exports counters that are at most a second old.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	var s sample
	var err error
	if s.attr, err = c.ia.Query(); err != nil {
		return // the adapter is closed
	}
	if s.Stats, err = c.cachedStats(); err != nil {
		return
	}
	for i := range families {
		f, desc := &families[i], c.descs[i]
		if f.histogram != nil {
			ch <- constHistogram(desc, f.histogram(&s))
			continue
		}
		f.show(&s, func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(desc, f.kind, v, labels...)
		})
	}
}

// cachedStats returns counters that were read within the last statsInterval. If another goroutine is reading the
// counters, cachedStats waits for the end of that read, and returns the result of that read.
func (c *Collector) cachedStats() (dat.Stats, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.readAt.IsZero() && time.Since(c.readAt) < statsInterval {
		return c.lastStats, nil
	}
	s, err := c.readStats()
	if err != nil {
		return dat.Stats{}, err // the adapter is closed
	}
	c.lastStats, c.readAt = s, time.Now()
	return s, nil
}

// constHistogram converts h to a Prometheus histogram in seconds.
func constHistogram(desc *prometheus.Desc, h *dat.Histogram) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.Buckets))
	var count uint64
	for i, n := range h.Buckets {
		count += n
		if i < len(h.Buckets)-1 { // the upper bound of the last bucket is +Inf, which Prometheus adds
			buckets[h.Bound(i).Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, float64(h.Sum)/1e9, buckets)
}

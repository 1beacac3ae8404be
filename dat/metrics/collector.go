package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/dat"
)

// Collector is a prometheus.Collector for one adapter. A scrape stops each engine for microseconds; between scrapes a
// Collector costs nothing. For a closed adapter it exports no metrics. Any goroutine may call its methods.
type Collector struct {
	ia    *dat.IA
	descs []*prometheus.Desc // of families, in the same order
}

var _ prometheus.Collector = (*Collector)(nil)

// prefix is the prefix of the names of all metrics.
const prefix = "datxdp_"

// NewCollector makes a Collector for ia. name is the value of the label ia of every metric.
func NewCollector(name string, ia *dat.IA) *Collector {
	c := &Collector{ia: ia}
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

// Collect implements prometheus.Collector. It reads the adapter's counters.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	var s sample
	var err error
	if s.attr, err = c.ia.Query(); err != nil {
		return // the adapter is closed
	}
	if s.Stats, err = c.ia.Stats(); err != nil {
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

// constHistogram converts h to a Prometheus histogram in seconds.
func constHistogram(desc *prometheus.Desc, h *dat.Histogram) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.Buckets))
	var count uint64
	for i, n := range h.Buckets {
		count += n
		if i < len(h.Buckets)-1 { // the last is +Inf
			buckets[h.Bound(i).Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, float64(h.Sum)/1e9, buckets)
}

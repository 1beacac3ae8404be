// Package metrics exports the counters of all streams of the process to Prometheus. docs/METRICS.md lists the metrics.
//
// Ordering: the calls may come in any order. Ownership: a Collector keeps nothing. Threading: any goroutine may call every
// method.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/stream"
)

// Collector is a prometheus.Collector for the streams of the process. Register it once. It reads the counters at most once
// a second: a scrape less than one second after a read gets the values of that read. Any goroutine may call the methods.
type Collector struct {
	descs []*prometheus.Desc // the descriptions of families, in the same order

	mu     sync.Mutex // guards the fields below
	last   stream.Stats
	readAt time.Time // zero before the first read
}

// statsInterval is the time between two reads of the counters, because a read looks at every stream.
const statsInterval = time.Second

// prefix is the prefix of the names of all metrics.
const prefix = "datxdp_stream_"

// family is a metric, with one value for each value of its label.
type family struct {
	name  string
	kind  prometheus.ValueType
	label string // empty for none
	help  string
	show  func(s *stream.Stats, put func(v float64, label ...string))
}

// families has all metrics. A test checks that docs/METRICS.md has the same.
var families = []family{
	{"streams", prometheus.GaugeValue, "state",
		"Number of streams by state. pending: being connected, or waiting for Accept. orphan: closed, with bytes to deliver.",
		func(s *stream.Stats, put func(float64, ...string)) {
			put(float64(s.InUse), "in_use")
			put(float64(s.Pending), "pending")
			put(float64(s.Orphans), "orphan")
		}},
	{"dials_total", prometheus.CounterValue, "result", "Dials by result.",
		func(s *stream.Stats, put func(float64, ...string)) {
			put(float64(s.Dialed), "connected")
			put(float64(s.DialErrors), "failed")
		}},
	{"accepts_total", prometheus.CounterValue, "", "Streams that Accept has returned.",
		func(s *stream.Stats, put func(float64, ...string)) { put(float64(s.Accepted)) }},
	{"received_bytes_total", prometheus.CounterValue, "", "Bytes that have arrived for Read.",
		func(s *stream.Stats, put func(float64, ...string)) { put(float64(s.ReceivedBytes)) }},
	{"written_bytes_total", prometheus.CounterValue, "", "Bytes that Write has taken.",
		func(s *stream.Stats, put func(float64, ...string)) { put(float64(s.WrittenBytes)) }},
	{"ring_bytes", prometheus.GaugeValue, "", "Memory of the rings.",
		func(s *stream.Stats, put func(float64, ...string)) { put(float64(s.RingBytes)) }},
}

// NewCollector makes a Collector.
func NewCollector() *Collector {
	c := &Collector{}
	for i := range families {
		var labels []string
		if families[i].label != "" {
			labels = []string{families[i].label}
		}
		c.descs = append(c.descs, prometheus.NewDesc(prefix+families[i].name, families[i].help, labels, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	for i := range families {
		families[i].show(&s, func(v float64, label ...string) {
			ch <- prometheus.MustNewConstMetric(c.descs[i], families[i].kind, v, label...)
		})
	}
}

// stats returns counters that are at most a second old.
func (c *Collector) stats() stream.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readAt.IsZero() || time.Since(c.readAt) >= statsInterval {
		c.last, c.readAt = stream.ReadStats(), time.Now()
	}
	return c.last
}

var _ prometheus.Collector = (*Collector)(nil)

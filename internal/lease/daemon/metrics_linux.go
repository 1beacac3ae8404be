package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/datxdp/datxdp/internal/lease"
)

// Bounds of the pages.
const (
	pageTimeout = 10 * time.Second
	maxPages    = 4
	maxHeader   = 16 << 10 // bytes of a request
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("datxdpd_"+name, help, labels, nil)
}

var (
	leasesDesc      = desc("leases", "Leases that exist.", "interface", "mode", "uid")
	bytesDesc       = desc("locked_bytes", "Locked memory of the leases that exist.", "interface", "mode", "uid")
	connectionsDesc = desc("connections", "Open connections of clients.")
	grantedDesc     = desc("granted_total", "Leases made.")
	adoptedDesc     = desc("adopted_total", "Leases of an earlier daemon taken over.")
	requestsDesc    = desc("requests_total", "Requests of clients.")
	refusedDesc     = desc("refused_total", "Refused requests and connections.", "reason")
)

// collector exports a server.
type collector struct{ server *lease.Server }

func (c collector) Describe(d chan<- *prometheus.Desc) {
	for _, x := range []*prometheus.Desc{leasesDesc, bytesDesc, connectionsDesc, grantedDesc, adoptedDesc, requestsDesc, refusedDesc} {
		d <- x
	}
}

func (c collector) Collect(m chan<- prometheus.Metric) {
	type holder struct {
		ifname, mode string
		uid          uint32
	}
	leases, bytes := map[holder]float64{}, map[holder]float64{}
	for _, l := range c.server.Leases() {
		h := holder{l.Interface, string(l.Mode), l.Holder.UID}
		leases[h]++
		bytes[h] += float64(l.Bytes)
	}
	for h, n := range leases {
		uid := strconv.FormatUint(uint64(h.uid), 10)
		m <- prometheus.MustNewConstMetric(leasesDesc, prometheus.GaugeValue, n, h.ifname, h.mode, uid)
		m <- prometheus.MustNewConstMetric(bytesDesc, prometheus.GaugeValue, bytes[h], h.ifname, h.mode, uid)
	}
	n := c.server.Counters()
	m <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(n.Connections))
	m <- prometheus.MustNewConstMetric(grantedDesc, prometheus.CounterValue, float64(n.Granted))
	m <- prometheus.MustNewConstMetric(adoptedDesc, prometheus.CounterValue, float64(n.Adopted))
	m <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(n.Requests))
	for reason, count := range n.Refused {
		m <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(count), reason)
	}
}

// serveMetrics serves /metrics and /healthz until ctx is done.
func (c *Config) serveMetrics(ctx context.Context, s *lease.Server) {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: maxPages, Timeout: pageTimeout}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	h := &http.Server{Handler: mux, ReadTimeout: pageTimeout, WriteTimeout: 2 * pageTimeout, IdleTimeout: pageTimeout, MaxHeaderBytes: maxHeader}
	defer context.AfterFunc(ctx, func() { h.Close() })()
	if err := h.Serve(c.Metrics); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		c.Log.Error("the page of metrics has ended", "error", err)
	}
}

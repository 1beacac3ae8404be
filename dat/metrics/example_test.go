package metrics_test

import (
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics"
)

// A program that has a Prometheus registry adds a collector for each adapter.
func ExampleNewCollector() {
	ia, err := dat.Open("auto:eth0", dat.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	prometheus.MustRegister(metrics.NewCollector("auto:eth0", ia))
}

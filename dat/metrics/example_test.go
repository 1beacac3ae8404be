package metrics_test

import (
	"context"
	"log"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics"
)

// A program with a registry of its own adds a collector for each adapter.
func ExampleNewCollector() {
	ia, err := dat.Open("auto:eth0", dat.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	prometheus.MustRegister(metrics.NewCollector("eth0", ia))
}

// A program without one has an exporter serve the metrics, the connections and the profiles.
func ExampleExporter() {
	ia, err := dat.Open("auto:eth0", dat.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	exporter := metrics.NewExporter()
	defer exporter.Add("eth0", ia)()
	l, err := net.Listen("tcp", "127.0.0.1:9404")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(exporter.Serve(context.Background(), l))
}

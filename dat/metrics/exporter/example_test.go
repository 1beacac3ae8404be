package exporter_test

import (
	"context"
	"log"
	"net"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics/exporter"
)

// A program without a Prometheus registry uses an Exporter to serve metrics, connections and profiles.
func Example() {
	ia, err := dat.Open("auto:eth0", dat.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	e := exporter.New()
	remove, err := e.Add("auto:eth0", ia)
	if err != nil {
		log.Fatal(err)
	}
	defer remove()
	l, err := net.Listen("tcp", "127.0.0.1:9404")
	if err != nil {
		log.Fatal(err)
	}
	log.Print(e.Serve(context.Background(), l))
}

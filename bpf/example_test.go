package bpf_test

import (
	"fmt"
	"log"
	"net/netip"

	"github.com/datxdp/datxdp/bpf"
)

// Redirect one port of one address on eth0 to the sockets of its four queues.
func ExampleAttach() {
	steer, err := bpf.Attach(bpf.Options{
		Interface: "eth0",
		Port:      17473,
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
		Queues:    4,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer steer.Close()
	if err := steer.NativeRefusal(); err != nil {
		log.Printf("slower, in %s mode: %v", steer.Mode(), err)
	}

	for queue, socket := range openSockets() {
		if err := steer.Register(queue, socket); err != nil {
			log.Print(err)
			return
		}
	}
	counters, err := steer.Counters()
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("%+v\n", counters)
}

// openSockets would bind an AF_XDP socket to each queue.
func openSockets() []int { return nil }

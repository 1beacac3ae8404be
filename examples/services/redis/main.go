// Command redis serves the Redis protocol with tidwall/redcon, and asks with go-redis. The listener of package transport
// goes to Serve, its dialer to redis.Options.
//
//	redis --ia xdp:eth0                       serves
//	redis --ia xdp:eth0 --to 10.0.0.1:7000    asks
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/tidwall/redcon"

	"github.com/datxdp/datxdp/examples/services/transport"
)

func main() {
	c := client{}
	flag.IntVar(&c.requests, "requests", 10000, "requests of the client")
	flag.IntVar(&c.size, "size", 1<<20, "bytes of a large value")
	transport.Main("redis", serve, c.run)
}

func serve(ctx context.Context, link *transport.Transport, port uint16) error {
	l, err := link.Listen(ctx, port)
	if err != nil {
		return err
	}
	fmt.Println("serving on", l.Addr())
	// Serve closes all connections when the listener is closed.
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	return redcon.Serve(l, newStore().handle, nil, nil)
}

// Command reqresp sends requests from many goroutines over a few connections and receives their responses.
//
//	reqresp --ia udp:127.0.0.1                                   serves
//	reqresp --ia udp:127.0.0.2 --to 127.0.0.1 --requests 20000   asks
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/datxdp/datxdp/message"
	"github.com/datxdp/datxdp/stream"
)

const port = 7008

func main() {
	adapter := flag.String("ia", "udp:127.0.0.1", "adapter: udp:ADDRESS, xdp:INTERFACE or auto:INTERFACE")
	to := flag.String("to", "", "IP address of the server to ask; without it, serve")
	clients := flag.Uint("clients", 4, "connections")
	depth := flag.Uint("depth", 32, "requests outstanding on each connection")
	requests := flag.Uint("requests", 20000, "requests on each connection")
	flag.Parse()
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := func() error { return ask(ctx, *adapter, *to, *clients, *depth, *requests) }
	if *to == "" {
		run = func() error { return serve(ctx, *adapter) }
	}
	if err := run(); err != nil && ctx.Err() == nil {
		log.Fatal("reqresp: ", err)
	}
}

func serve(ctx context.Context, adapter string) error {
	l, err := stream.Listen(ctx, adapter, port)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	fmt.Println("serving on", l.Addr())
	return message.Serve(l, func(_ context.Context, into, request []byte) ([]byte, error) { return append(into, request...), nil })
}

func ask(ctx context.Context, adapter, server string, clients, depth, requests uint) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	start := time.Now()
	for range clients {
		c, err := stream.Dial(ctx, adapter, net.JoinHostPort(server, fmt.Sprint(port)))
		if err != nil {
			return err
		}
		m := message.NewClient(c)
		defer m.Close()
		for g := range depth {
			group.Go(func() {
				for i := g; i < requests && ctx.Err() == nil; i += depth {
					if _, err := m.Call(ctx, nil, []byte("question")); err != nil {
						cancel(err)
					}
				}
			})
		}
	}
	group.Wait()
	took := time.Since(start)
	fmt.Printf("%d requests in %v: %.0f requests/s\n", clients*requests, took.Round(time.Millisecond), float64(clients*requests)/took.Seconds())
	return context.Cause(ctx)
}

// Command kv is a key-value store. Its clients send requests; examples/table has a store without a server's work.
//
//	kv --ia udp:127.0.0.1                                        serves
//	kv --ia udp:127.0.0.2 --to 127.0.0.1 put colour blue         stores
//	kv --ia udp:127.0.0.2 --to 127.0.0.1 get colour              prints "blue"
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/datxdp/datxdp/message"
	"github.com/datxdp/datxdp/stream"
)

const port = "7009"

func main() {
	adapter := flag.String("ia", "udp:127.0.0.1", "adapter: udp:ADDRESS, xdp:INTERFACE or auto:INTERFACE")
	to := flag.String("to", "", "IP address of the server to ask; without it, serve")
	flag.Parse()
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := ask
	if *to == "" {
		run = serve
	}
	if err := run(ctx, *adapter, *to); err != nil && ctx.Err() == nil {
		log.Fatal("kv: ", err)
	}
}

func serve(ctx context.Context, adapter, _ string) error {
	l, err := stream.Listen(ctx, adapter, 7009)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	fmt.Println("serving on", l.Addr())
	var mu sync.Mutex
	store := make(map[string]string)
	s := message.Server{MaxSize: 4096, Handler: func(_ context.Context, into, request []byte) ([]byte, error) {
		words := strings.Split(string(request), "\x00")
		mu.Lock()
		defer mu.Unlock()
		switch {
		case len(words) == 3 && words[0] == "put" && len(store) < 100_000:
			store[words[1]] = words[2]
			return append(into, "stored"...), nil
		case len(words) == 2 && words[0] == "get" && store[words[1]] != "":
			return append(into, store[words[1]]...), nil
		}
		return nil, fmt.Errorf("no such key, or the store is full; say get KEY, or put KEY VALUE")
	}}
	return s.Serve(l)
}

func ask(ctx context.Context, adapter, server string) error {
	c, err := stream.Dial(ctx, adapter, net.JoinHostPort(server, port))
	if err != nil {
		return err
	}
	m := message.NewClient(c)
	defer m.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	value, err := m.Call(ctx, nil, []byte(strings.Join(flag.Args(), "\x00")))
	if err == nil {
		fmt.Printf("%q\n", value)
	}
	return err
}

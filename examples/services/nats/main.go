// Command nats runs a NATS server in its process, and clients of it. The server takes connections of its own process
// only by InProcessConn, so that each accepted connection is joined to one. A client gets the dialer of package
// transport by SetCustomDialer.
//
//	nats --ia xdp:eth0                                             serves
//	nats --ia xdp:eth0 --to 10.0.0.1:7000                          measures requests and messages
//	nats --ia xdp:eth0 --to 10.0.0.1:7000 --subscribe news         prints messages until ^C
//	nats --ia xdp:eth0 --to 10.0.0.1:7000 --publish news TEXT      sends a message
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/datxdp/datxdp/examples/services/transport"
)

func main() {
	c := client{}
	flag.StringVar(&c.subscribe, "subscribe", "", "subject whose messages the client prints")
	flag.StringVar(&c.publish, "publish", "", "subject of a message; the arguments are its text")
	flag.IntVar(&c.requests, "requests", 10000, "requests of the client")
	flag.IntVar(&c.messages, "messages", 100000, "messages of the client")
	transport.Main("nats", serve, c.run)
}

func serve(ctx context.Context, link *transport.Transport, port uint16) error {
	s, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("the server does not start")
	}
	l, err := link.Listen(ctx, port)
	if err != nil {
		return err
	}
	fmt.Println("serving on", l.Addr())
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var joined sync.WaitGroup
	for {
		c, err := l.Accept()
		if err != nil {
			s.Shutdown()
			joined.Wait()
			s.WaitForShutdown()
			return err
		}
		joined.Go(func() { join(c, s) })
	}
}

// join connects a client to the server until one of them closes the connection.
func join(c net.Conn, s *server.Server) {
	inside, err := s.InProcessConn()
	if err != nil {
		_ = c.Close() // the client tries another server
		return
	}
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{c, inside}, {inside, c}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // either end may leave at any time
			_, _ = c.Close(), inside.Close()
		})
	}
	both.Wait()
}

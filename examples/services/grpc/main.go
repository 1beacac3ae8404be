// Command grpc serves and calls a gRPC service: unary calls, and streams in one and in both directions, with and without
// TLS. The listener of package transport goes to Serve, its dialer to WithContextDialer.
//
//	grpc --ia xdp:eth0                       serves
//	grpc --ia xdp:eth0 --to 10.0.0.1:7000    calls
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/datxdp/datxdp/examples/services/grpc/echo"
	"github.com/datxdp/datxdp/examples/services/transport"
)

// grace is the time that calls have to end after ^C.
const grace = time.Second

func main() {
	c := client{}
	tlsDir := flag.String("tls", "", "directory of cert.pem and key.pem for TLS; a server creates them")
	flag.IntVar(&c.calls, "calls", 10000, "unary calls of the client, and messages of a stream in both directions")
	flag.Int64Var(&c.messages, "messages", 10000, "messages of a stream in one direction")
	flag.IntVar(&c.size, "size", 4096, "bytes of such a message")
	transport.Main("grpc", func(ctx context.Context, link *transport.Transport, port uint16) error {
		return serve(ctx, link, port, *tlsDir)
	}, func(ctx context.Context, link *transport.Transport, server string) error {
		c.server = server
		return c.run(ctx, link, *tlsDir)
	})
}

func serve(ctx context.Context, link *transport.Transport, port uint16, tlsDir string) error {
	var options []grpc.ServerOption
	if tlsDir != "" {
		c, err := transport.ServerTLS(tlsDir)
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(c)))
	}
	l, err := link.Listen(ctx, port)
	if err != nil {
		return err
	}
	fmt.Println("serving on", l.Addr())
	s := grpc.NewServer(options...)
	echo.RegisterEchoServer(s, &server{})
	defer context.AfterFunc(ctx, func() {
		defer time.AfterFunc(grace, s.Stop).Stop()
		s.GracefulStop()
	})()
	return s.Serve(l)
}

// server implements the service.
type server struct{ echo.UnimplementedEchoServer }

func (*server) Say(_ context.Context, m *echo.Message) (*echo.Message, error) { return m, nil }

func (*server) Repeat(r *echo.RepeatRequest, s grpc.ServerStreamingServer[echo.Message]) error {
	for range r.Times {
		if err := s.Send(r.Message); err != nil {
			return err
		}
	}
	return nil
}

func (*server) Count(s grpc.ClientStreamingServer[echo.Message, echo.CountReply]) error {
	var reply echo.CountReply
	for {
		m, err := s.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return s.SendAndClose(&reply)
		case err != nil:
			return err
		}
		reply.Messages++
		reply.Bytes += int64(len(m.Payload))
	}
}

func (*server) Chat(s grpc.BidiStreamingServer[echo.Message, echo.Message]) error {
	for {
		m, err := s.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := s.Send(m); err != nil {
			return err
		}
	}
}

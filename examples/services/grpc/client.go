package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/datxdp/datxdp/examples/services/grpc/echo"
	"github.com/datxdp/datxdp/examples/services/internal/measure"
	"github.com/datxdp/datxdp/examples/services/transport"
)

// client calls every method of a server.
type client struct {
	server   string // HOST:PORT
	calls    int    // unary calls, and messages of Chat
	messages int64  // of Repeat and Count
	size     int    // bytes of these messages
}

func (c *client) run(ctx context.Context, link *transport.Transport, tlsDir string) error {
	creds := insecure.NewCredentials()
	if tlsDir != "" {
		t, err := transport.ClientTLS(tlsDir)
		if err != nil {
			return err
		}
		creds = credentials.NewTLS(t)
	}
	conn, err := grpc.NewClient("passthrough:///"+c.server, grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return link.DialContext(ctx, "tcp", addr) }))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, stop := context.WithCancel(ctx) // ends a stream that was left before its end
	defer stop()
	e := echo.NewEchoClient(conn)
	for _, f := range []func(context.Context, echo.EchoClient) error{c.say, c.chat, c.repeat, c.count} {
		if err := f(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// say makes unary calls.
func (c *client) say(ctx context.Context, e echo.EchoClient) error {
	m := &echo.Message{Payload: []byte("hello")}
	line, err := measure.Requests(ctx, c.calls, func() error {
		r, err := e.Say(ctx, m)
		return check(r, m, err)
	})
	if err == nil {
		fmt.Println("unary:", line)
	}
	return err
}

// check returns an error if the server has not returned the message.
func check(got, want *echo.Message, err error) error {
	if err == nil && !bytes.Equal(got.Payload, want.Payload) {
		err = fmt.Errorf("the server has returned %q in place of %q", got.Payload, want.Payload)
	}
	return err
}

// chat sends messages over a stream in both directions, and waits for each to return.
func (c *client) chat(ctx context.Context, e echo.EchoClient) error {
	s, err := e.Chat(ctx)
	if err != nil {
		return err
	}
	m := &echo.Message{Payload: []byte("hello")}
	line, err := measure.Requests(ctx, c.calls, func() error {
		if err := s.Send(m); err != nil {
			return err
		}
		r, err := s.Recv()
		return check(r, m, err)
	})
	if err != nil {
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the stream does not end: %w", err)
	}
	fmt.Println("stream:", line)
	return nil
}

// repeat receives a stream of messages.
func (c *client) repeat(ctx context.Context, e echo.EchoClient) error {
	start := time.Now()
	m := &echo.Message{Payload: make([]byte, c.size)}
	s, err := e.Repeat(ctx, &echo.RepeatRequest{Message: m, Times: c.messages})
	if err != nil {
		return err
	}
	for range c.messages {
		r, err := s.Recv()
		if err := check(r, m, err); err != nil {
			return err
		}
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the stream does not end: %w", err)
	}
	fmt.Println("received", measure.Throughput(c.messages*int64(c.size), time.Since(start)))
	return nil
}

// count sends a stream of messages.
func (c *client) count(ctx context.Context, e echo.EchoClient) error {
	start := time.Now()
	s, err := e.Count(ctx)
	if err != nil {
		return err
	}
	m := &echo.Message{Payload: make([]byte, c.size)}
	for range c.messages {
		if err := s.Send(m); err != nil {
			return err
		}
	}
	r, err := s.CloseAndRecv()
	if err != nil {
		return err
	}
	if r.Messages != c.messages || r.Bytes != c.messages*int64(c.size) {
		return fmt.Errorf("the server has counted %d messages and %d bytes", r.Messages, r.Bytes)
	}
	fmt.Println("sent", measure.Throughput(r.Bytes, time.Since(start)))
	return nil
}

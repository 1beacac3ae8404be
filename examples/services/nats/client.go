package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/datxdp/datxdp/examples/services/internal/measure"
	"github.com/datxdp/datxdp/examples/services/transport"
)

// client publishes, subscribes or measures.
type client struct {
	server             string // HOST:PORT
	subscribe, publish string // subjects
	text               string // to publish
	requests, messages int    // to measure
}

// dialer is a nats.CustomDialer.
type dialer struct {
	ctx  context.Context
	link *transport.Transport
}

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.link.DialContext(d.ctx, network, address)
}

func (c *client) connect(ctx context.Context, link *transport.Transport, options ...nats.Option) (*nats.Conn, error) {
	options = append(options, nats.SetCustomDialer(dialer{ctx, link}), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.PingInterval(time.Second)) // finds out that the process of the server has died
	return nats.Connect("nats://"+c.server, options...)
}

func (c *client) run(ctx context.Context, link *transport.Transport, server string) error {
	c.server, c.text = server, strings.Join(flag.Args(), " ")
	nc, err := c.connect(ctx, link, nats.ReconnectHandler(func(*nats.Conn) { fmt.Println("connected again") }))
	if err != nil {
		return err
	}
	defer nc.Close()
	switch {
	case c.subscribe != "":
		return c.print(ctx, nc)
	case c.publish != "":
		return errors.Join(nc.Publish(c.publish, []byte(c.text)), nc.Flush())
	}
	other, err := c.connect(ctx, link)
	if err != nil {
		return err
	}
	defer other.Close()
	if err := c.request(ctx, nc, other); err != nil {
		return err
	}
	return c.stream(ctx, nc, other)
}

// print prints the messages of a subject until ctx is done. The client library connects again if the server is away.
func (c *client) print(ctx context.Context, nc *nats.Conn) error {
	sub, err := nc.SubscribeSync(c.subscribe)
	if err != nil {
		return err
	}
	if err := nc.Flush(); err != nil {
		return err
	}
	fmt.Println("subscribed to", c.subscribe)
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		fmt.Println(transport.Printable(string(m.Data)))
	}
}

// request asks a service of another connection. A request and its answer both pass the server.
func (c *client) request(ctx context.Context, asker, service *nats.Conn) error {
	sub, err := service.Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }) // the asker misses the answer
	if err != nil {
		return err
	}
	if err := service.Flush(); err != nil {
		return err
	}
	line, err := measure.Requests(ctx, c.requests, func() error {
		m, err := asker.RequestWithContext(ctx, "echo", []byte("hello"))
		if err == nil && string(m.Data) != "hello" {
			err = fmt.Errorf("the answer is %q", m.Data)
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println("request:", line)
	return sub.Unsubscribe()
}

// stream publishes messages that another connection receives.
func (c *client) stream(ctx context.Context, publisher, subscriber *nats.Conn) error {
	sub, err := subscriber.SubscribeSync("numbers")
	if err != nil {
		return err
	}
	if err := errors.Join(sub.SetPendingLimits(-1, -1), subscriber.Flush()); err != nil {
		return err
	}
	start := time.Now()
	sent := make(chan error, 1)
	go func() {
		for i := range c.messages {
			if err := publisher.Publish("numbers", fmt.Appendf(nil, "%0128d", i)); err != nil {
				sent <- err
				return
			}
		}
		sent <- publisher.Flush()
	}()
	for i := range c.messages {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("%0128d", i); string(m.Data) != want {
			return fmt.Errorf("message %d is %q", i, m.Data)
		}
	}
	if err := <-sent; err != nil {
		return err
	}
	fmt.Printf("stream: %d messages, %.0f/s\n", c.messages, float64(c.messages)/time.Since(start).Seconds())
	return nil
}

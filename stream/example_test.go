package stream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"syscall"

	"github.com/datxdp/datxdp/stream"
)

// A server sends every byte back. A client sends a line and reads the answer.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = server(ctx, "udp:127.0.0.3") // until ctx is done
	}()

	answer, err := client(ctx, "udp:127.0.0.4", "127.0.0.3:7000")
	for errors.Is(err, syscall.ECONNREFUSED) { // the server does not listen yet
		answer, err = client(ctx, "udp:127.0.0.4", "127.0.0.3:7000")
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(answer)
	stop()
	<-stopped
	// Output: hello
}

func server(ctx context.Context, adapter string) error {
	l, err := stream.Listen(ctx, adapter, 7000) // l is a net.Listener
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		c, err := l.Accept() // c is a net.Conn
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}()
	}
}

func client(ctx context.Context, adapter, address string) (string, error) {
	c, err := stream.Dial(ctx, adapter, address) // c is a net.Conn
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := fmt.Fprintln(c, "hello"); err != nil {
		return "", err
	}
	return bufio.NewReader(c).ReadString('\n')
}

// A Dialer connects a library that takes a function like that of net.Dialer.
func ExampleDialer() {
	d := stream.Dialer{Adapter: "udp:127.0.0.4"}
	dial := d.DialContext
	_, err := dial(context.Background(), "tcp", "127.0.0.3:port")
	fmt.Println(err)
	// Output: dial dat: lookup tcp/port: unknown port
}

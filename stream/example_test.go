package stream_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/datxdp/datxdp/stream"
)

// A server sends every byte back. A client sends a line and reads the answer.
func Example() {
	ctx := context.Background()
	l, err := stream.Listen(ctx, "udp:127.0.0.3", 7000)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()

	c, err := stream.Dial(ctx, "udp:127.0.0.4", "127.0.0.3:7000")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, "hello")
	_ = c.CloseWrite()
	answer, err := io.ReadAll(c)
	fmt.Printf("%s%v\n", answer, err)
	// Output:
	// hello
	// <nil>
}

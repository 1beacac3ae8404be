package gopeer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"google.golang.org/grpc/test/bufconn"

	"github.com/datxdp/datxdp/stream"
)

// Memory is an adapter name: both ends are in one process, and connections are pipes in its memory. It measures what
// the library itself costs.
const Memory = "memory"

// End is the address of a server, and the transport of its connections.
type End struct {
	// Addr is HOST:PORT.
	Addr string
	// Adapter is the adapter of streams, or Memory. Without it, connections are those of the kernel.
	Adapter string

	memory *bufconn.Listener // for Memory
}

// kernelOnly fails if an adapter was chosen, for a library that runs only over the kernel.
func (e End) kernelOnly() error {
	if e.Adapter != "" {
		return errors.New("it runs over the kernel only, without an adapter")
	}
	return nil
}

func (e End) listen(ctx context.Context) (net.Listener, error) {
	switch e.Adapter {
	case "":
		var lc net.ListenConfig
		return lc.Listen(ctx, "tcp", e.Addr)
	case Memory:
		return e.memory, nil
	}
	_, port, err := net.SplitHostPort(e.Addr)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %s: %w", port, err)
	}
	l, err := stream.Listen(ctx, e.Adapter, uint16(n))
	if err != nil {
		return nil, err // a nil *stream.Listener is not a nil net.Listener
	}
	return l, nil
}

func (e End) dial(ctx context.Context) (net.Conn, error) {
	switch e.Adapter {
	case "":
		var d net.Dialer
		return d.DialContext(ctx, "tcp", e.Addr)
	case Memory:
		return e.memory.DialContext(ctx)
	}
	d := stream.Dialer{Adapter: e.Adapter}
	return d.DialContext(ctx, "tcp", e.Addr)
}

// dialer has the signature of net.Dialer.DialContext. It always connects to the server.
func (e End) dialer(ctx context.Context, _, _ string) (net.Conn, error) { return e.dial(ctx) }

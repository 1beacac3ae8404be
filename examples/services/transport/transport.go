// Package transport lets an example run over datxdp or over kernel TCP: a flag chooses one of them, and the rest of the
// program sees a net.Listener and net.Conns. It also has what else the examples share: their end on ^C, and TLS.
package transport

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/stream"
)

// Transport makes connections. Any goroutine may call its methods after the flags are parsed.
type Transport struct {
	Adapter string // name of the adapter
	TCP     bool   // kernel TCP in place of the adapter
	Host    string // IP address at which to listen over TCP; without it, all addresses
}

// Flags returns the transport that the flags --ia and --tcp choose.
func Flags() *Transport {
	t := &Transport{}
	flag.StringVar(&t.Adapter, "ia", "udp:127.0.0.1", "adapter: udp:ADDRESS, xdp:INTERFACE or auto:INTERFACE")
	flag.BoolVar(&t.TCP, "tcp", false, "use kernel TCP in place of the adapter")
	return t
}

// Listen starts a service at a port.
func (t *Transport) Listen(ctx context.Context, port uint16) (net.Listener, error) {
	if t.TCP {
		var lc net.ListenConfig
		return lc.Listen(ctx, "tcp", net.JoinHostPort(t.Host, fmt.Sprint(port)))
	}
	l, err := stream.Listen(ctx, t.Adapter, port)
	if err != nil {
		return nil, err // a nil *stream.Listener is not a nil net.Listener
	}
	return l, nil
}

// DialContext connects to address, which is HOST:PORT. Its signature is that of net.Dialer.DialContext.
func (t *Transport) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if t.TCP {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
	d := stream.Dialer{Adapter: t.Adapter}
	return d.DialContext(ctx, network, address)
}

// Main is the main function of a program with two ends. It parses the flags: those of the program, of Flags, and --port
// and --to. With --to HOST:PORT it calls ask, otherwise serve.
func Main(program string, serve func(ctx context.Context, t *Transport, port uint16) error, ask func(ctx context.Context, t *Transport, server string) error) {
	t := Flags()
	port := flag.Uint("port", 7000, "port to serve")
	server := flag.String("to", "", "HOST:PORT of the server; without it, serve")
	flag.Parse()
	Run(program, func(ctx context.Context) error {
		if *server != "" {
			return ask(ctx, t, *server)
		}
		return serve(ctx, t, uint16(*port))
	})
}

// Run runs a program until it has ended or ^C ends its context. It prints an error and exits with status 1 if the
// program has failed. The program closes its listener and its connections before it returns. Run waits until the closed
// connections have delivered their bytes, for at most drainTime; a second ^C ends the program at once.
func Run(program string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err := run(ctx)
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	_ = stream.Drain(drain)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", program, printableError(err))
		os.Exit(1)
	}
}

const drainTime = 5 * time.Second

package gopeer

import (
	"context"
	"time"

	"github.com/quic-go/quic-go"
)

// protocol is the protocol name that TLS requires (ALPN).
const protocol = "datxdp-peers"

// window is the number of bytes that a receiver accepts before they are read. The default maximum of 6 MiB limits a
// stream of 1 MiB messages.
const window = 16 << 20

func quicConfig() *quic.Config {
	return &quic.Config{
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window,
		InitialConnectionReceiveWindow: window, MaxConnectionReceiveWindow: window,
	}
}

func serveQUIC(ctx context.Context, e End, ready func()) error {
	if err := e.kernelOnly(); err != nil {
		return err
	}
	cfg, err := serverConfig()
	if err != nil {
		return err
	}
	l, err := quic.ListenAddr(e.Addr, cfg, quicConfig())
	if err != nil {
		return err
	}
	defer l.Close()
	ready()
	for {
		conn, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			stream, err := conn.AcceptStream(ctx)
			if err == nil {
				_ = serveBytes(stream) // the client reports the error
			}
		}()
	}
}

func runQUIC(ctx context.Context, e End, a Ask) (tally, error) {
	if err := e.kernelOnly(); err != nil {
		return tally{}, err
	}
	conn, err := quic.DialAddr(ctx, e.Addr, clientConfig(), quicConfig())
	if err != nil {
		return tally{}, err
	}
	defer func() { _ = conn.CloseWithError(0, "done") }() // everything has been answered
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return tally{}, err
	}
	defer context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })()
	return runBytes(stream, a)
}

package gopeer

import (
	"context"
	"net"
	"time"
)

func serveNet(ctx context.Context, e End, ready func()) error {
	l, err := e.listen(ctx)
	if err != nil {
		return err
	}
	return serveListener(ctx, l, ready)
}

// serveListener serves every connection of a listener.
func serveListener(ctx context.Context, l net.Listener, ready func()) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // Accept then returns an error
	ready()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_ = serveBytes(conn) // the client reports the error
		}()
	}
}

func runNet(ctx context.Context, e End, a Ask) (tally, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return tally{}, err
	}
	return runConn(ctx, conn, a)
}

// runConn measures over a connection, and closes it.
func runConn(ctx context.Context, conn net.Conn, a Ask) (tally, error) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return runBytes(conn, a)
}

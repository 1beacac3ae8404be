package gopeer

import (
	"context"
	"net"
	"time"
)

func serveNet(ctx context.Context, addr string, ready func()) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
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

func runNet(ctx context.Context, addr string, a Ask) (tally, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return tally{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return runBytes(conn, a)
}

package gopeer

import (
	"context"
	"time"
)

func serveNet(ctx context.Context, e End, ready func()) error {
	l, err := e.listen(ctx)
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

func runNet(ctx context.Context, e End, a Ask) (tally, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return tally{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return runBytes(conn, a)
}

package gopeer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// serveHTTP returns the body of each request.
func serveHTTP(ctx context.Context, e End, ready func()) error {
	l, err := e.listen(ctx)
	if err != nil {
		return err
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(body) // the client reports the error
	})}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	ready()
	return s.Serve(l)
}

// runHTTP makes an HTTP/1.1 request of each message.
func runHTTP(ctx context.Context, e End, a Ask) (tally, error) {
	if e.Adapter == Memory {
		return tally{}, errors.New("net/http needs read deadlines in the past, which a pipe in memory applies too late")
	}
	t := &http.Transport{DialContext: e.dialer}
	defer t.CloseIdleConnections()
	c, url := http.Client{Transport: t}, "http://"+e.Addr+"/"
	return a.over(&requestPipe{request: func(message []byte) ([]byte, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(message))
		if err != nil {
			return nil, err
		}
		resp, err := c.Do(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		return body, err
	}})
}

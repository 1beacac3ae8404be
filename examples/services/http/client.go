package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/datxdp/datxdp/examples/services/internal/measure"
	"github.com/datxdp/datxdp/examples/services/transport"
)

// client asks a server.
type client struct {
	server   string // HOST:PORT
	version  int    // of HTTP
	requests int
	bytes    int64 // to download and to upload
}

func (c *client) run(ctx context.Context, link *transport.Transport, tlsDir string) error {
	t := &http.Transport{DialContext: link.DialContext, Protocols: &http.Protocols{}}
	defer t.CloseIdleConnections()
	t.Protocols.SetHTTP1(c.version == 1)
	url := "http://" + c.server
	if tlsDir == "" {
		t.Protocols.SetUnencryptedHTTP2(c.version == 2)
	} else {
		t.Protocols.SetHTTP2(c.version == 2)
		url = "https://" + c.server
		var err error
		if t.TLSClientConfig, err = transport.ClientTLS(tlsDir); err != nil {
			return err
		}
	}
	h := &http.Client{Transport: t}
	answer, err := c.ask(ctx, h, url+"/hello")
	if err != nil {
		return err
	}
	fmt.Println(transport.Printable(answer))
	line, err := measure.Requests(ctx, c.requests, func() error {
		_, err := c.ask(ctx, h, url+"/hello")
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println(line)
	return c.transfer(ctx, h, url)
}

// ask returns the answer to a GET request.
func (c *client) ask(ctx context.Context, h *http.Client, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	return do(h, r)
}

func do(h *http.Client, r *http.Request) (string, error) {
	resp, err := h.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

// transfer downloads and uploads bytes.
func (c *client) transfer(ctx context.Context, h *http.Client, url string) error {
	start := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/bytes/%d", url, c.bytes), nil)
	if err != nil {
		return err
	}
	resp, err := h.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(&pattern{}, resp.Body)
	if err != nil {
		return err
	}
	fmt.Println("downloaded", measure.Throughput(n, time.Since(start)))

	start = time.Now()
	r, err = http.NewRequestWithContext(ctx, http.MethodPost, url+"/bytes", io.LimitReader(&pattern{}, c.bytes))
	if err != nil {
		return err
	}
	answer, err := do(h, r)
	if err != nil {
		return err
	}
	if answer != fmt.Sprint(c.bytes) {
		return fmt.Errorf("the server has received %s bytes of %d", answer, c.bytes)
	}
	fmt.Println("uploaded", measure.Throughput(c.bytes, time.Since(start)))
	return nil
}

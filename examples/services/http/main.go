// Command http serves and asks over HTTP/1.1 or HTTP/2, with and without TLS. The server and the client are those of
// net/http; the listener and the dialer come from package transport.
//
//	http --ia xdp:eth0                              serves
//	http --ia xdp:eth0 --to 10.0.0.1:7000           asks over HTTP/1.1
//	http --ia xdp:eth0 --to 10.0.0.1:7000 --http 2  asks over HTTP/2
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/datxdp/datxdp/examples/services/transport"
)

// grace is the time that requests have to end after ^C.
const grace = 5 * time.Second

func main() {
	c := client{}
	tlsDir := flag.String("tls", "", "directory of cert.pem and key.pem for TLS; a server creates them")
	flag.IntVar(&c.version, "http", 1, "version of HTTP of the client: 1 or 2")
	flag.IntVar(&c.requests, "requests", 10000, "requests of the client")
	flag.Int64Var(&c.bytes, "bytes", 64<<20, "bytes that the client downloads and uploads")
	transport.Main("http", func(ctx context.Context, link *transport.Transport, port uint16) error {
		return serve(ctx, link, port, *tlsDir)
	}, func(ctx context.Context, link *transport.Transport, server string) error {
		c.server = server
		return c.run(ctx, link, *tlsDir)
	})
}

func serve(ctx context.Context, link *transport.Transport, port uint16, tlsDir string) (err error) {
	s := &http.Server{Handler: handler(), ReadHeaderTimeout: grace, Protocols: &http.Protocols{}}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	if tlsDir != "" {
		if s.TLSConfig, err = transport.ServerTLS(tlsDir); err != nil {
			return err
		}
	}
	l, err := link.Listen(ctx, port)
	if err != nil {
		return err
	}
	fmt.Println("serving on", l.Addr())
	ended := make(chan error, 1)
	running := context.AfterFunc(ctx, func() {
		end, stop := context.WithTimeout(context.Background(), grace)
		defer stop()
		ended <- s.Shutdown(end)
	})
	if s.TLSConfig != nil {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if !running() {
		err = <-ended // Serve returns when Shutdown begins
	}
	return errors.Join(err, s.Close())
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from %s", r.Proto)
	})
	mux.HandleFunc("GET /bytes/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", r.PathValue("n"))
		_, _ = io.CopyN(w, &pattern{}, n) // a failure reaches the client as a short body
	})
	mux.HandleFunc("POST /bytes", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(&pattern{}, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, n)
	})
	return mux
}

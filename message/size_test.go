package message

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// TestServerMaxSize: a request, or a response, above the limit of the server fails its own call, which says why. An error text
// may be longer than the limit. Other calls of the client go on.
func TestServerMaxSize(t *testing.T) {
	limited := func(s *service) {
		s.MaxSize = 100
		wait := s.Handler
		s.Handler = func(ctx context.Context, into, request []byte) ([]byte, error) {
			switch string(request) {
			case "large":
				return append(into, make([]byte, s.MaxSize+1)...), nil
			case "error":
				return into, errors.New(strings.Repeat("e", 2*s.MaxSize))
			}
			return wait(ctx, into, request)
		}
	}
	eachServer(t, limited, func(t *testing.T, s *service) {
		c := NewClient(s.dial())
		defer c.Close()
		other := make(chan error, 1)
		go func() {
			_, err := c.Call(t.Context(), nil, []byte("other"))
			other <- err
		}()
		<-s.began
		close(s.release)
		for _, e := range []struct{ request, text string }{
			{string(make([]byte, s.MaxSize+1)), "request has 101 bytes, more than the server's limit of 100"},
			{string(make([]byte, DefaultMaxSize)), "more than the server's limit of 100"},
			{"large", "response has 101 bytes, more than the server's limit of 100"},
			{"error", strings.Repeat("e", 2*s.MaxSize)},
		} {
			var remote RemoteError
			if _, err := c.Call(t.Context(), nil, []byte(e.request)); !errors.As(err, &remote) || !strings.Contains(err.Error(), e.text) {
				t.Errorf("a call of %d bytes: %v; want %q", len(e.request), err, e.text)
			}
			limit := bytes.Repeat([]byte("x"), s.MaxSize)
			if p, err := c.Call(t.Context(), nil, limit); err != nil || !bytes.Equal(p, limit) {
				t.Fatalf("the next call: %q, %v", p, err)
			}
		}
		if err := <-other; err != nil {
			t.Errorf("the other call: %v", err)
		}
	})
}

package rawbench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// pair starts a server and returns a client, in a lab.
func pair(t *testing.T, engine string, mtu int) *Client {
	t.Helper()
	return pairOn(t, engine, mtu, 1)
}

func pairOn(t *testing.T, engine string, mtu, queues int) *Client {
	t.Helper()
	labtest.RequireXDP(t)
	if mtu > 1500 {
		labtest.RequireMultiBuffer(t)
	}
	l := labtest.New(t, lab.Options{MTU: mtu, Queues: queues})
	config := func(s lab.Side) Config {
		return Config{Interface: lab.Interface, Engine: engine, MTU: mtu, Port: 17473,
			Local: s.Addr4(), Peer: s.Peer().Addr4(), PeerMAC: s.Peer().MAC()}
	}
	var server *Server
	var client *Client
	open := func(s lab.Side, fn func() error) {
		t.Helper()
		if err := l.Do(s, fn); err != nil {
			t.Fatal(err)
		}
	}
	open(lab.A, func() (err error) { server, err = NewServer(config(lab.A)); return err })
	open(lab.B, func() (err error) { client, err = NewClient(config(lab.B)); return err })

	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := server.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := closeBoth(l, server, client); err != nil && engine == Native {
			t.Error(err)
		}
	})
	return client
}

func closeBoth(l *lab.Lab, server *Server, client *Client) error {
	if err := l.Do(lab.A, server.Close); err != nil {
		return err
	}
	return l.Do(lab.B, client.Close)
}

func TestLatency(t *testing.T) {
	for _, engine := range []string{Native, Asavie} {
		t.Run(engine, func(t *testing.T) {
			c := pair(t, engine, 1500)
			var n, sum time.Duration
			r, err := c.Latency(t.Context(), MinFrame, 20*time.Millisecond, 100*time.Millisecond, func(d time.Duration) { n++; sum += d })
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 || r.Received != uint64(n) || r.Received+r.Lost != r.Sent {
				t.Fatalf("got %d round trips, %+v", n, r)
			}
			if c.Mode() != "copy" { // the only mode of a veth
				t.Errorf("mode: got %q, want copy", c.Mode())
			}
			t.Logf("%s: mean of %d: %s", engine, n, sum/n)
		})
	}
}

// TestOtherQueue: frames that arrive on another queue than the first are received and answered.
func TestOtherQueue(t *testing.T) {
	c := pairOn(t, Native, 1500, 2)
	p := c.port.(*native)
	p.sock = p.queues[1].sock // a veth delivers to the queue with the sender's queue number
	r, err := c.Stream(t.Context(), MinFrame, 20*time.Millisecond, 50*time.Millisecond)
	if err != nil || r.Received == 0 || r.Received+r.Lost != r.Sent {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestStream(t *testing.T) {
	tests := []struct {
		engine    string
		mtu, size int
	}{
		{Native, 1500, MinFrame}, {Native, 1500, 1514}, {Native, 9000, 9014}, {Native, 65000, 65014},
		{Asavie, 1500, MinFrame}, {Asavie, 1500, 1514},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s/%d", tt.engine, tt.size), func(t *testing.T) {
			c := pair(t, tt.engine, tt.mtu)
			r, err := c.Stream(t.Context(), tt.size, 20*time.Millisecond, 100*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if r.Received == 0 || r.Received+r.Lost != r.Sent || r.Bytes != r.Received*uint64(tt.size) {
				t.Errorf("counts do not add up: %+v", r)
			}
			t.Logf("%.3f M frames/s, %.2f Gb/s, %+v", float64(r.Received)/r.Elapsed.Seconds()/1e6,
				float64(r.Bytes)*8/r.Elapsed.Seconds()/1e9, r)
		})
	}
}

package rawbench

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// badPort is a port on which some events never happen. Each call takes a millisecond, so that virtual time passes.
type badPort struct {
	// room, answers and left say what works: there is room for frames, pings are answered, frames are transmitted.
	room, answers, left bool
	// late is how long an answer takes.
	late time.Duration

	sent    time.Time
	arrived [][]byte
	waits   int
}

func (p *badPort) exchange(visit visitor) error {
	time.Sleep(time.Millisecond)
	if time.Since(p.sent) < p.late {
		return nil
	}
	for _, h := range p.arrived {
		visit(h, len(h))
	}
	p.arrived = nil
	return nil
}

func (p *badPort) send(n, size int, write func([]byte)) (int, error) {
	if !p.room {
		return 0, nil
	}
	for range n {
		h := make([]byte, size)
		write(h)
		if p.answers && kindOf(h) == ping {
			setKind(h, pong)
			p.arrived, p.sent = append(p.arrived, h), time.Now()
		}
	}
	time.Sleep(time.Duration(n) * time.Microsecond)
	return n, nil
}

func (p *badPort) wait(d time.Duration) error {
	p.waits++
	time.Sleep(d)
	return nil
}

func (p *badPort) drained() bool          { return p.left }
func (*badPort) dropped() (rx, tx uint64) { return 0, 0 }
func (*badPort) mode() string             { return "copy" }
func (*badPort) close() error             { return nil }

func clientOn(p port) *Client {
	cfg := Config{MTU: 1500, Local: netip.AddrFrom4([4]byte{10, 73, 0, 2}), Peer: netip.AddrFrom4([4]byte{10, 73, 0, 1})}
	return &Client{end: end{port: p, cfg: cfg}, head: template(cfg, nil)}
}

// TestClientGivesUp: whatever is lost, a run ends within its limit, and the error names what was missing.
func TestClientGivesUp(t *testing.T) {
	tests := []struct {
		name string
		port badPort
		want error
		says string
	}{
		{"no room", badPort{}, ErrStuck, "no frame has left"},
		{"no answer", badPort{room: true, left: true}, ErrSilent, "pings to 10.73.0.1"},
		{"frames do not leave", badPort{room: true, answers: true}, ErrStuck, "no frame has left"},
		{"no result", badPort{room: true, answers: true, left: true}, ErrSilent, "result of 10.73.0.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clientOn(&tt.port)
				start := time.Now()
				_, err := c.Stream(t.Context(), MinFrame, 10*time.Millisecond, 10*time.Millisecond)
				took := time.Since(start)
				if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || took > 2*answerTimeout {
					t.Errorf("got %v after %s, want %s: %v within %s", err, took, tt.says, tt.want, 2*answerTimeout)
				}
			})
		})
	}
}

// TestLateAnswer: an answer that is delayed, as on a busy host, is late but not lost.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clientOn(&badPort{room: true, answers: true, left: true, late: 150 * time.Millisecond})
		var least time.Duration = time.Hour
		r, err := c.Latency(t.Context(), MinFrame, 0, 2*time.Second, func(took time.Duration) { least = min(least, took) })
		if err != nil || r.Lost != 0 || r.Sent == 0 || least < 150*time.Millisecond {
			t.Errorf("%+v, %v, the shortest round trip %v", r, err, least)
		}
	})
}

// TestClientObeysContext: a run ends soon after its context.
func TestClientObeysContext(t *testing.T) {
	ports := map[string]badPort{"stuck": {}, "silent": {room: true}, "well": {room: true, answers: true, left: true}}
	runs := map[string]func(context.Context, *Client) error{
		"latency": func(ctx context.Context, c *Client) error {
			_, err := c.Latency(ctx, MinFrame, time.Hour, time.Hour, func(time.Duration) {})
			return err
		},
		"stream": func(ctx context.Context, c *Client) error {
			_, err := c.Stream(ctx, MinFrame, time.Hour, time.Hour)
			return err
		},
	}
	for portName, port := range ports {
		for name, run := range runs {
			t.Run(name+" "+portName, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					port := port
					c := clientOn(&port)
					start := time.Now()
					err := run(ctx, c)
					if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 2*time.Second {
						t.Errorf("got %v after %s, want the end of the context", err, took)
					}
				})
			})
		}
	}
}

// TestServerRests: a server that receives nothing sleeps, and still ends with its context.
func TestServerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		p := &badPort{}
		s := &Server{end: end{port: p}}
		start := time.Now()
		if err := s.Serve(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); p.waits == 0 || took > 6*time.Second {
			t.Errorf("got %d naps in %s", p.waits, took)
		}
	})
}

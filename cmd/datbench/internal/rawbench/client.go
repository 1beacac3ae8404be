package rawbench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/usage"
)

// Time limits of a client.
const (
	// answerTimeout limits the wait for an answer, and for room to send. It is long because a server on a busy host may
	// be descheduled for a second.
	answerTimeout = 3 * time.Second
	// lostAfter is the age at which a ping counts as lost. It is long because an emulated machine may answer after 100
	// ms.
	lostAfter = time.Second
	// askEvery is the interval at which the result is requested again.
	askEvery = 5 * time.Millisecond
)

// Client is the sending end. One goroutine uses it.
type Client struct {
	end
	head [headLen]byte
	run  uint32
	seq  uint64

	// Results of the latest exchange.
	gotSeq   uint64
	gotCount *count
}

// Result is one run as seen from both ends.
type Result struct {
	// Sent and Received are the frames of the measured part; Bytes is the size of the received ones.
	Sent, Received, Bytes uint64
	Elapsed               time.Duration
	// Lost is Sent minus Received. Counted is the number of frames that counters report as dropped.
	Lost, Counted uint64
	// CoreShare is the fraction of a core that each end had, client first.
	CoreShare []float64
}

// NewClient opens the sending end.
func NewClient(cfg Config) (*Client, error) {
	ifi, err := net.InterfaceByName(cfg.Interface)
	if err != nil {
		return nil, fmt.Errorf("rawbench: %s: %w", cfg.Interface, err)
	}
	e, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{end: e, head: template(cfg, ifi.HardwareAddr), run: rand.Uint32()}, nil
}

// Latency measures round trips of one frame of size bytes for the time d, after a warm-up. It calls record for each.
func (c *Client) Latency(ctx context.Context, size int, warmup, d time.Duration, record func(time.Duration)) (Result, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.begin(ctx, size); err != nil {
		return Result{}, err
	}
	use, base := usage.Start(), c.drops()
	measure := time.Now().Add(warmup)
	var r Result
	for now := time.Now(); now.Before(measure.Add(d)); now = time.Now() {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		took, err := c.roundTrip(ctx, size)
		if err != nil {
			return r, err
		}
		if now.Before(measure) {
			continue
		}
		r.Sent++
		if took < lostAfter {
			r.Received++
			record(took)
		}
	}
	r.Elapsed, r.Lost = time.Since(measure), r.Sent-r.Received
	lost := c.drops().since(base)
	r.Counted, r.CoreShare = lost.rx+lost.tx, []float64{use.Share()}
	return r, nil
}

// begin prepares a run and waits until the other end answers.
func (c *Client) begin(ctx context.Context, size int) error {
	if size < MinFrame || size > c.cfg.MTU+ipStart {
		return fmt.Errorf("rawbench: frame of %d bytes at MTU %d: %w", size, c.cfg.MTU, ErrEngine)
	}
	c.run++
	for deadline := time.Now().Add(answerTimeout); ; {
		took, err := c.roundTrip(ctx, MinFrame)
		if err != nil {
			return err
		}
		if took < lostAfter {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("rawbench: pings to %v for %s: %w", c.cfg.Peer, answerTimeout, ErrSilent)
		}
	}
}

// roundTrip sends one ping and returns its round-trip time; lostAfter if there is no answer.
func (c *Client) roundTrip(ctx context.Context, size int) (time.Duration, error) {
	start := time.Now()
	if err := c.one(ctx, ping, size); err != nil {
		return 0, err
	}
	for spins := 1; ; spins++ {
		if err := c.port.exchange(c.visit); err != nil {
			return 0, err
		}
		if c.gotSeq == c.seq {
			return time.Since(start), nil
		}
		if spins%1024 == 0 && time.Since(start) > lostAfter {
			return lostAfter, ctx.Err()
		}
	}
}

// one sends a single frame as soon as there is room. While it waits it calls exchange, which kicks the tx ring and
// frees received frames.
func (c *Client) one(ctx context.Context, k kind, size int) error {
	c.prepare(k, size)
	for deadline := time.Now().Add(answerTimeout); ; {
		n, err := c.port.send(1, size, c.write)
		if n > 0 || err != nil {
			return err
		}
		if err := c.port.exchange(c.visit); err != nil {
			return err
		}
		if err := c.expired(ctx, deadline); err != nil {
			return err
		}
	}
}

// expired reports the end of a wait for room.
func (c *Client) expired(ctx context.Context, deadline time.Time) error {
	if time.Now().After(deadline) {
		return fmt.Errorf("rawbench: no frame has left for %s: %w", answerTimeout, ErrStuck)
	}
	return ctx.Err()
}

func (c *Client) prepare(k kind, size int) {
	setKind(c.head[:], k)
	setRun(c.head[:], c.run)
	setSize(c.head[:], size)
}

// write fills in one frame.
func (c *Client) write(h []byte) {
	c.seq++
	copy(h, c.head[:])
	setSeq(h, c.seq)
}

// visit handles one received frame of the other end.
func (c *Client) visit(h []byte, _ int) bool {
	if !ours(h) || runOf(h) != c.run {
		return false
	}
	switch kindOf(h) {
	case pong:
		c.gotSeq = seqOf(h)
	case result:
		if len(h) >= askLen {
			n := decodeCount(h[headLen:])
			c.gotCount = &n
		}
	default: // kinds that only a server receives
	}
	return false
}

// batch returns the number of frames per send. It is 32, which one system call transmits in copy mode, but 4 for large
// frames: they have many buffers, and more of them would not fit into the CPU cache.
func batch(size int) int {
	if size > 4096 {
		return 4
	}
	return 32
}

// Stream sends frames of size bytes as fast as possible for the time d, after a warm-up. The other end counts them.
func (c *Client) Stream(ctx context.Context, size int, warmup, d time.Duration) (Result, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.begin(ctx, size); err != nil {
		return Result{}, err
	}
	if _, err := c.blast(ctx, warm, size, warmup); err != nil {
		return Result{}, err
	}
	if err := c.drain(ctx); err != nil {
		return Result{}, err
	}
	use, base := usage.Start(), c.drops()
	sent, err := c.blast(ctx, data, size, d)
	if err != nil {
		return Result{}, err
	}
	share := use.Share()
	if err := c.drain(ctx); err != nil {
		return Result{}, err
	}
	got, err := c.ask(ctx)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Sent: sent, Received: got.frames, Bytes: got.bytes, Elapsed: got.elapsed, Lost: sent - min(got.frames, sent),
		Counted: got.dropped + c.drops().since(base).tx, CoreShare: []float64{share, got.coreShare},
	}, nil
}

// blast sends until d has passed.
func (c *Client) blast(ctx context.Context, k kind, size int, d time.Duration) (sent uint64, err error) {
	c.prepare(k, size)
	n := batch(size)
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		taken, err := c.port.send(n, size, c.write)
		if err != nil {
			return sent, err
		}
		sent += uint64(taken)
		if taken == 0 {
			if err := c.port.exchange(c.visit); err != nil {
				return sent, err
			}
		}
	}
	return sent, ctx.Err()
}

// drain waits until all frames have left.
func (c *Client) drain(ctx context.Context) error {
	for deadline := time.Now().Add(answerTimeout); !c.port.drained(); {
		if err := c.port.exchange(c.visit); err != nil {
			return err
		}
		if err := c.expired(ctx, deadline); err != nil {
			return err
		}
	}
	return nil
}

// ask requests the count of the other end.
func (c *Client) ask(ctx context.Context) (count, error) {
	c.gotCount = nil
	for deadline := time.Now().Add(answerTimeout); time.Now().Before(deadline) && ctx.Err() == nil; {
		if err := c.one(ctx, ask, askLen); err != nil {
			return count{}, err
		}
		for again := time.Now().Add(askEvery); time.Now().Before(again); {
			if err := c.port.exchange(c.visit); err != nil {
				return count{}, err
			}
			if c.gotCount != nil {
				return *c.gotCount, nil
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return count{}, err
	}
	return count{}, fmt.Errorf("rawbench: result of %v: %w", c.cfg.Peer, ErrSilent)
}

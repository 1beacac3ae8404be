package rawbench

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"time"
)

// How long a client waits.
const (
	// patience is for an answer to anything.
	patience = time.Second
	// lostAfter is when a ping counts as lost: even a server without a core answers sooner.
	lostAfter = 100 * time.Millisecond
	// askEvery is how often the result is asked for anew.
	askEvery = 5 * time.Millisecond
)

// Client sends. One goroutine uses it.
type Client struct {
	end
	head [headLen]byte
	run  uint32
	seq  uint64

	// What the latest exchange brought.
	gotSeq   uint64
	gotCount *count
}

// Result is one run as seen from both ends.
type Result struct {
	// Sent and Received are frames of the measured part, Bytes those received.
	Sent, Received, Bytes uint64
	Elapsed               time.Duration
	// Lost is Sent less Received; Counted is how many of them a counter accounts for.
	Lost, Counted uint64
	// CoreShare is the part of a core that each end had, client first.
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

// Latency measures round trips of one frame of size bytes for as long as d, after a warm-up.
// record is called with each.
func (c *Client) Latency(size int, warmup, d time.Duration, record func(time.Duration)) (Result, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.begin(size); err != nil {
		return Result{}, err
	}
	use := startUsage()
	measure := time.Now().Add(warmup)
	var r Result
	for now := time.Now(); now.Before(measure.Add(d)); now = time.Now() {
		took, err := c.roundTrip(size)
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
	r.CoreShare = []float64{use.share()}
	return r, nil
}

// begin prepares a run, and waits for the other end to be there at all.
func (c *Client) begin(size int) error {
	if size < MinFrame || size > c.cfg.MTU+ipStart {
		return fmt.Errorf("rawbench: frame of %d bytes at MTU %d: %w", size, c.cfg.MTU, ErrEngine)
	}
	c.run++
	for deadline := time.Now().Add(patience); ; {
		took, err := c.roundTrip(MinFrame)
		if err != nil {
			return err
		}
		if took < lostAfter {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("rawbench: %v: %w", c.cfg.Peer, ErrSilent)
		}
	}
}

// roundTrip is one ping and its pong, or lostAfter without.
func (c *Client) roundTrip(size int) (time.Duration, error) {
	start := time.Now()
	if err := c.one(ping, size); err != nil {
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
			return lostAfter, nil
		}
	}
}

// one sends a single frame, as soon as there is room.
func (c *Client) one(k kind, size int) error {
	c.prepare(k, size)
	for {
		n, err := c.port.send(1, size, c.write)
		if n > 0 || err != nil {
			return err
		}
	}
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

// visit notes answers.
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
	default: // the server's own kinds
	}
	return false
}

// batch is frames per send: 32 is what one system call moves in copy mode. Large frames take many
// buffers each, and four of them keep the caches.
func batch(size int) int {
	if size > 4096 {
		return 4
	}
	return 32
}

// Stream sends frames of size bytes as fast as they go for as long as d, after a warm-up; the
// other end counts.
func (c *Client) Stream(size int, warmup, d time.Duration) (Result, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.begin(size); err != nil {
		return Result{}, err
	}
	if _, err := c.blast(warm, size, warmup); err != nil {
		return Result{}, err
	}
	if err := c.drain(); err != nil {
		return Result{}, err
	}
	use, base := startUsage(), c.drops()
	sent, err := c.blast(data, size, d)
	if err != nil {
		return Result{}, err
	}
	share := use.share()
	if err := c.drain(); err != nil {
		return Result{}, err
	}
	got, err := c.ask()
	if err != nil {
		return Result{}, err
	}
	return Result{
		Sent: sent, Received: got.frames, Bytes: got.bytes, Elapsed: got.elapsed, Lost: sent - min(got.frames, sent),
		Counted: got.dropped + c.drops().since(base).tx, CoreShare: []float64{share, got.coreShare},
	}, nil
}

// blast sends until d has passed.
func (c *Client) blast(k kind, size int, d time.Duration) (sent uint64, err error) {
	c.prepare(k, size)
	n := batch(size)
	for end := time.Now().Add(d); time.Now().Before(end); {
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
	return sent, nil
}

// drain waits until what was sent has left.
func (c *Client) drain() error {
	for deadline := time.Now().Add(patience); !c.port.drained(); {
		if err := c.port.exchange(c.visit); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("rawbench: frames stay in the transmit ring: %w", ErrSilent)
		}
	}
	return nil
}

// ask fetches the count of the other end.
func (c *Client) ask() (count, error) {
	c.gotCount = nil
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err := c.one(ask, askLen); err != nil {
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
	return count{}, fmt.Errorf("rawbench: result of %v: %w", c.cfg.Peer, ErrSilent)
}

package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math/rand/v2"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// shapeTransfer returns what a transfer needs at each end. A transfer moves its bytes in pieces; each piece is one RDMA
// operation. The row's queue depth limits the number of outstanding pieces. Each end needs memory for that many pieces.
// It also needs receives, because a message announces each piece.
func shapeTransfer(r plan.Spec) (i, t shape) {
	both := shape{numSources: r.QueueDepth(), rdmaSlots: r.QueueDepth(), messageSlots: 2 * r.QueueDepth(), numRequests: 2*r.QueueDepth() + spare}
	return both, both
}

// pieces divides the bytes of a transfer into operations of the row's size.
type pieces struct {
	total, size int64
	window      int64
}

func (c *Conn) pieces() pieces { return pieces{c.row.Bytes, c.row.Size, int64(c.row.QueueDepth())} }

func (p pieces) count() int64 { return (p.total + p.size - 1) / p.size }

// length returns the length of piece i, and place returns the position of the piece in the window.
func (p pieces) length(i int64) int { return int(min(p.size, p.total-i*p.size)) }
func (p pieces) place(i int64) int  { return int(i % p.window) }

// generator makes the bytes of a transfer and their digest, for comparison with the other side's.
type generator struct {
	random *rand.ChaCha8
	sum    hash.Hash
}

func newGenerator() *generator {
	var seed [32]byte
	binary.NativeEndian.PutUint64(seed[:], rand.Uint64())
	return &generator{rand.NewChaCha8(seed), sha256.New()}
}

func (g *generator) fill(b []byte) {
	_, _ = g.random.Read(b) // never fails
	_, _ = g.sum.Write(b)   // a hash never fails
}

// compare ends a transfer. Both digests must be equal.
func (c *Conn) compare(r *result.Result, sum hash.Hash, start time.Time) (measure.Evidence, error) {
	elapsed := time.Since(start)
	t, err := c.finish()
	if err != nil {
		return measure.Evidence{}, err
	}
	p := c.pieces()
	r.Count(p.count(), elapsed)
	r.Gbps = float64(p.total) * 8 / elapsed.Seconds() / 1e9
	if got := [32]byte(sum.Sum(nil)); got != t.Digest {
		r.Invalidate("SHA-256 differs: %x here, %x there", got[:8], t.Digest[:8])
	}
	return measure.Evidence{Elapsed: elapsed, Tally: &t}, nil
}

func digest(sum hash.Hash) measure.Tally { return measure.Tally{Digest: [32]byte(sum.Sum(nil))} }

// transferSend sends the pieces as messages.
func transferSend(c *Conn, r *result.Result) (measure.Evidence, error) {
	g, p, start := newGenerator(), c.pieces(), time.Now()
	for i := range p.count() {
		// A source may be overwritten only after its message has completed.
		if err := c.pollUntil(func() bool { return c.posted-c.done < p.window }); err != nil {
			return measure.Evidence{}, err
		}
		n := p.length(i)
		g.fill(c.mem.source(p.place(i))[:n])
		if err := c.send(c.mem.piece(p.place(i), n)); err != nil {
			return measure.Evidence{}, err
		}
	}
	return c.compare(r, g.sum, start)
}

// hashSend hashes messages in the order of arrival, until it has all pieces and the end message.
func hashSend(c *Conn) (measure.Tally, error) {
	sum, left, ended := sha256.New(), c.row.Bytes, false
	c.onReceive = func(slot, n int) error {
		if ended = left == 0; ended {
			return nil
		}
		_, _ = sum.Write(c.mem.slot(slot)[:n]) // a hash never fails
		left -= int64(n)
		return c.receive(slot)
	}
	err := c.pollUntil(func() bool { return ended })
	return digest(sum), err
}

// countNotifications returns a counter of the notifications that arrive on the connection. A notification is a short
// message of the peer. It says that a piece has arrived, or that the buffer of a piece is free again. The peer's end
// message is not counted. When it arrives, *ended becomes true.
func (c *Conn) countNotifications(ended *bool) *int64 {
	n := new(int64)
	c.onReceive = func(slot, _ int) error {
		if *ended = c.mem.slot(slot)[0] == measure.StageEnd; *ended {
			return nil
		}
		*n++
		return c.receive(slot)
	}
	return n
}

// note sends a notification.
func (c *Conn) note() error {
	return c.send([]dat.LMRTriplet{c.mem.lmr.Segment(c.mem.noteOffset(), 1)})
}

// transferWrite writes all pieces to the target. The target sends a notification for each piece that it has hashed.
func transferWrite(c *Conn, r *result.Result) (measure.Evidence, error) {
	g, p, start, ended := newGenerator(), c.pieces(), time.Now(), false
	hashed := c.countNotifications(&ended)
	for i := range p.count() {
		if err := c.pollUntil(func() bool { return i-*hashed < p.window }); err != nil {
			return measure.Evidence{}, err
		}
		n := p.length(i)
		g.fill(c.mem.source(p.place(i))[:n])
		if err := c.write(c.mem.piece(p.place(i), n), c.remoteSlot(p.place(i), n)); err != nil {
			return measure.Evidence{}, err
		}
		if err := c.note(); err != nil {
			return measure.Evidence{}, err
		}
	}
	if err := c.pollUntil(func() bool { return *hashed == p.count() }); err != nil {
		return measure.Evidence{}, err
	}
	return c.compare(r, g.sum, start)
}

// hashWrite hashes each piece when its notification has arrived. The piece is then complete, because a message arrives
// after the writes that were posted before it.
func hashWrite(c *Conn) (measure.Tally, error) {
	sum, p, ended := sha256.New(), c.pieces(), false
	written := c.countNotifications(&ended)
	for i := range p.count() {
		if err := c.pollUntil(func() bool { return *written > i }); err != nil {
			return measure.Tally{}, err
		}
		_, _ = sum.Write(c.mem.slot(p.place(i))[:p.length(i)]) // a hash never fails
		if err := c.note(); err != nil {
			return measure.Tally{}, err
		}
	}
	err := c.pollUntil(func() bool { return ended })
	return digest(sum), err
}

// transferRead reads each piece when its notification arrives, hashes it and notifies the target.
func transferRead(c *Conn, r *result.Result) (measure.Evidence, error) {
	sum, p, start, ended := sha256.New(), c.pieces(), time.Now(), false
	ready := c.countNotifications(&ended)
	for i := range p.count() {
		if err := c.pollUntil(func() bool { return *ready > i }); err != nil {
			return measure.Evidence{}, err
		}
		n := p.length(i)
		if err := c.read(c.mem.slotPiece(p.place(i), n), c.remoteSlot(p.place(i), n)); err != nil {
			return measure.Evidence{}, err
		}
		if err := c.pollUntil(func() bool { return c.done == c.posted }); err != nil {
			return measure.Evidence{}, err
		}
		_, _ = sum.Write(c.mem.slot(p.place(i))[:n]) // a hash never fails
		if err := c.note(); err != nil {
			return measure.Evidence{}, err
		}
	}
	return c.compare(r, sum, start)
}

// hashRead fills the window with pieces. It fills each place again after the initiator has read its piece.
func hashRead(c *Conn) (measure.Tally, error) {
	g, p, ended := newGenerator(), c.pieces(), false
	read := c.countNotifications(&ended)
	for i := range p.count() {
		if err := c.pollUntil(func() bool { return i-*read < p.window }); err != nil {
			return measure.Tally{}, err
		}
		g.fill(c.mem.slot(p.place(i))[:p.length(i)])
		if err := c.note(); err != nil {
			return measure.Tally{}, err
		}
	}
	err := c.pollUntil(func() bool { return ended })
	return digest(g.sum), err
}

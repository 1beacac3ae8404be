package workload

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/internal/result"
)

// pinger measures one round trip at a time through the stages of a row.
func (c *Conn) pinger(r *result.Result, roundTrip func() error) (measure.Evidence, error) {
	watch := newStopwatch(c)
	for i := int64(0); ; i++ {
		start := time.Now()
		if err := roundTrip(); err != nil {
			return measure.Evidence{}, err
		}
		if watch.lap(i, start, time.Now()) {
			return watch.fill(r), nil
		}
	}
}

// pingSend measures round trips of messages: one there, one back.
func pingSend(c *Conn, r *result.Result) (measure.Evidence, error) {
	back := false
	c.onReceive = func(slot, _ int) error {
		back = true
		return c.receive(slot)
	}
	ping := c.mem.sources[0]
	return c.pinger(r, func() error {
		back = false
		if err := c.send(ping); err != nil {
			return err
		}
		for !back {
			if _, err := c.poll(); err != nil {
				return err
			}
		}
		return nil
	})
}

// echoSend answers every message until the last.
func echoSend(c *Conn) (measure.Tally, error) {
	over := false
	pong := c.mem.sources[0]
	c.onReceive = func(slot, _ int) error {
		if over = c.mem.slot(slot)[0] == measure.StageEnd; over {
			return nil
		}
		if err := c.send(pong); err != nil {
			return err
		}
		return c.receive(slot)
	}
	return measure.Tally{}, c.pollUntil(func() bool { return over })
}

// pingWord is one side of a ping-pong of RDMA writes. It writes ascending numbers into the last word of the peer's
// slot.
type pingWord struct {
	c *Conn
	// peerWord is the word that the peer writes. lastSent is the last number that this side has written.
	peerWord *atomic.Uint64
	lastSent uint64
	ours     [words][]byte
}

func newPingWord(c *Conn) *pingWord {
	b := &pingWord{c: c, peerWord: lastWord(c.mem.slot(0)[:c.mem.size])}
	for i := range b.ours {
		b.ours[i] = c.mem.source(i)
	}
	return b
}

// writeNext writes the next number to the peer. It uses the source buffers round robin. It first waits until fewer
// writes are outstanding than there are buffers, so that the next buffer is free.
func (b *pingWord) writeNext() error {
	for b.c.posted-b.c.done >= words {
		if _, err := b.c.poll(); err != nil {
			return err
		}
	}
	b.lastSent++
	i := b.lastSent % words
	binary.NativeEndian.PutUint64(b.ours[i][b.c.mem.size-8:], b.lastSent)
	return b.c.write(b.c.mem.sources[i], b.c.remoteSlot(0, b.c.mem.size))
}

// pingWrite measures round trips of RDMA writes. Each side sees the peer's write by polling memory.
func pingWrite(c *Conn, r *result.Result) (measure.Evidence, error) {
	b := newPingWord(c)
	return c.pinger(r, func() error {
		if err := b.writeNext(); err != nil {
			return err
		}
		for b.peerWord.Load() != b.lastSent {
			if _, err := c.poll(); err != nil {
				return err
			}
		}
		return nil
	})
}

// echoWrite writes back every number that it sees, until the last message.
func echoWrite(c *Conn) (measure.Tally, error) {
	over := false
	c.onReceive = func(slot, _ int) error {
		over = c.mem.slot(slot)[0] == measure.StageEnd
		return nil
	}
	b := newPingWord(c)
	for !over {
		if b.peerWord.Load() != b.lastSent {
			if err := b.writeNext(); err != nil {
				return measure.Tally{}, err
			}
		}
		if _, err := c.poll(); err != nil {
			return measure.Tally{}, err
		}
	}
	return measure.Tally{}, nil
}

// pingRead measures RDMA reads from post to completion.
func pingRead(c *Conn, r *result.Result) (measure.Evidence, error) {
	piece, from := c.mem.slotPiece(0, c.mem.size), c.remoteSlot(0, c.mem.size)
	return c.pinger(r, func() error {
		if err := c.read(piece, from); err != nil {
			return err
		}
		for c.done != c.posted {
			if _, err := c.poll(); err != nil {
				return err
			}
		}
		return nil
	})
}

package main

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// pinger measures one round trip at a time through the phases of a row.
func (c *conn) pinger(r *result.Result, roundTrip func() error) (evidence, error) {
	watch := newStopwatch(c)
	for i := int64(0); ; i++ {
		start := time.Now()
		if err := roundTrip(); err != nil {
			return evidence{}, err
		}
		if watch.lap(i, start, time.Now()) {
			return watch.fill(r), nil
		}
	}
}

// pingSend: a message there, a message back.
func pingSend(c *conn, r *result.Result) (evidence, error) {
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

// echoSend answers every message, until the last.
func echoSend(c *conn) (tally, error) {
	over := false
	pong := c.mem.sources[0]
	c.onReceive = func(slot, _ int) error {
		if over = c.mem.slot(slot)[0] == phaseEnd; over {
			return nil
		}
		if err := c.send(pong); err != nil {
			return err
		}
		return c.receive(slot)
	}
	return tally{}, c.until(func() bool { return over })
}

// bell is one direction of a ping-pong of RDMA writes: numbers in the last word of a slot.
type bell struct {
	c *conn
	// heard is the word that the peer writes; sent the number of the latest of ours.
	heard *atomic.Uint64
	sent  uint64
	ours  [words][]byte
}

func newBell(c *conn) *bell {
	b := &bell{c: c, heard: lastWord(c.mem.slot(0)[:c.mem.size])}
	for i := range b.ours {
		b.ours[i] = c.mem.source(i)
	}
	return b
}

// ring writes the next number to the peer. Its source is free: the write of it that came words
// before has completed, or is waited for.
func (b *bell) ring() error {
	for b.c.posted-b.c.done >= words {
		if _, err := b.c.poll(); err != nil {
			return err
		}
	}
	b.sent++
	i := b.sent % words
	binary.NativeEndian.PutUint64(b.ours[i][b.c.mem.size-8:], b.sent)
	return b.c.write(b.c.mem.sources[i], b.c.remoteSlot(0, b.c.mem.size))
}

// pingWrite: a write there, seen in memory, a write back, seen in memory.
func pingWrite(c *conn, r *result.Result) (evidence, error) {
	b := newBell(c)
	return c.pinger(r, func() error {
		if err := b.ring(); err != nil {
			return err
		}
		for b.heard.Load() != b.sent {
			if _, err := c.poll(); err != nil {
				return err
			}
		}
		return nil
	})
}

// echoWrite writes back every number that it sees, until the last message.
func echoWrite(c *conn) (tally, error) {
	over := false
	c.onReceive = func(slot, _ int) error {
		over = c.mem.slot(slot)[0] == phaseEnd
		return nil
	}
	b := newBell(c)
	for !over {
		if b.heard.Load() != b.sent {
			if err := b.ring(); err != nil {
				return tally{}, err
			}
		}
		if _, err := c.poll(); err != nil {
			return tally{}, err
		}
	}
	return tally{}, nil
}

// pingRead: a read of the peer's memory, completed.
func pingRead(c *conn, r *result.Result) (evidence, error) {
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

package xdp

import (
	"fmt"
	"strings"
	"time"

	"github.com/datxdp/datxdp/link"
)

// proof is the payload type of the frame that proves a transmit side: local experiments (IEEE 802, 88-B5). The frame goes
// from our own MAC address to our own MAC address. A switch never sends a frame back to the port where it came from, and
// learns nothing new from it; a host that sees it all the same drops it, since the address is not its own.
const (
	proofType = 0x88b5
	proofSize = 60 // the least that Ethernet sends, without its checksum
)

// offer puts the frame that proves the transmit side into the tx ring. The caller is the socket's owner.
func (s *Socket) offer() bool {
	s.reap()
	if s.pool.count[isFree] == 0 || s.tx.reserve(1) == 0 {
		return false
	}
	f := s.pool.take(isAlloc)
	frame := s.umem.bytes(f, headRoom, proofSize)
	clear(frame)
	copy(frame[ethDst:], s.mac[:])
	copy(frame[ethSrc:], s.mac[:])
	be.PutUint16(frame[ethType:], proofType)
	s.pool.move(f, isAlloc, isSent)
	s.tx.put(0, desc{addr: s.umem.addr(f, headRoom), len: proofSize})
	s.tx.submit(1)
	s.drain()
	return true
}

// returned reports whether every frame that was given to transmit came back.
func (s *Socket) returned() bool {
	s.drain()
	s.reap()
	return s.pool.count[isSent] == 0
}

// silent lists the sockets, of those without traffic, that do not transmit: the frame that was offered does not come back
// through the completion ring. A socket whose interface is down proves nothing. The caller is the owner of all.
func silent(sockets []*Socket, patience time.Duration) (dead []int) {
	var waiting []int
	for q, s := range sockets {
		if s.offer() {
			waiting = append(waiting, q)
		}
	}
	for start := time.Now(); len(waiting) > 0; time.Sleep(proofPause) {
		dead = waiting[:0]
		for _, q := range waiting {
			if !sockets[q].returned() && sockets[q].stall.Load() != down {
				dead = append(dead, q)
			}
		}
		if waiting = dead; time.Since(start) > patience {
			break
		}
	}
	return waiting
}

// silentError says that queues do not transmit.
type silentError struct {
	name   string
	mode   Mode
	queues []int
}

func (e *silentError) Error() string {
	return fmt.Sprintf("xdp: %s: %s in %s mode: a frame for each was given to the driver and did not come back in %v; choose another mode",
		e.name, list(e.queues)+" not transmit", e.mode, proofPatience)
}

func (e *silentError) Unwrap() error { return link.ErrUnsupported }

// list names queues with a verb.
func list(queues []int) string {
	if len(queues) == 1 {
		return fmt.Sprintf("queue %d does", queues[0])
	}
	return "queues " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(queues)), ", "), "[]") + " do"
}

// prove checks that every queue transmits, before its mode is called granted. Without carrier there is nothing to learn.
func (d *Device) prove() error {
	dead := silent(d.sockets, proofPatience)
	if len(dead) == 0 || !d.routes.Refresh().Carrier {
		return nil
	}
	if d.added > 0 {
		return d.refuseAdded(dead)
	}
	return &silentError{name: d.name, mode: d.Mode(), queues: dead}
}

// refuseAdded explains queues that the driver made for the program and that do not transmit: with so many queues that it
// cannot make more it makes none.
func (d *Device) refuseAdded(dead []int) error {
	now, err := d.nic.channels(d.name)
	if err != nil {
		return err
	}
	return &openError{
		text: fmt.Sprintf("xdp: %s: the driver adds %d receive queues when an XDP program is attached, and %s not transmit: "+
			"choose so many queues that it cannot add any (ethtool -L %s combined %d)",
			d.name, d.added, list(dead), d.name, now.most()-d.added+1),
		is: []error{link.ErrUnsupported},
	}
}

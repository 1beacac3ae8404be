package xdp

import (
	"fmt"
	"strings"
	"time"

	"github.com/datxdp/datxdp/link"
)

// proofType is the EtherType for local experiments (IEEE 802, 88-B5). The proof frame has this type; its completion
// shows that a queue transmits. Source and destination of the frame are our own MAC address. A switch does not forward
// the frame, because the destination is on the port where the frame arrived. Another host drops the frame, because the
// frame is not addressed to that host.
const (
	proofType = 0x88b5
	proofSize = 60 // the minimum Ethernet frame without its checksum, in bytes
)

// queueProof puts the proof frame into the tx ring. It returns false if there is no room. The caller must own the
// socket.
func (s *Socket) queueProof() bool {
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

// allReturned reports whether the kernel has completed every transmitted frame.
func (s *Socket) allReturned() bool {
	s.drain()
	s.reap()
	return s.pool.inFlight() == 0
}

// silentSockets sends a proof frame on each socket. It returns the indices of the sockets whose frame is not completed
// within the timeout, except sockets whose interface is down. The caller owns all the sockets, and they carry no
// traffic.
func silentSockets(sockets []*Socket, timeout time.Duration) (dead []int) {
	var waiting []int
	for q, s := range sockets {
		if s.queueProof() {
			waiting = append(waiting, q)
		}
	}
	for start := time.Now(); len(waiting) > 0; time.Sleep(proofPause) {
		dead = waiting[:0]
		for _, q := range waiting {
			if !sockets[q].allReturned() && sockets[q].stall.Load() != down {
				dead = append(dead, q)
			}
		}
		if waiting = dead; time.Since(start) > timeout {
			break
		}
	}
	return waiting
}

// modeError reports a mode that was granted and does not work. In Auto mode Open then tries a slower one.
type modeError struct {
	mode Mode
	text string
}

func (e *modeError) Error() string { return e.text }
func (e *modeError) Unwrap() error { return link.ErrUnsupported }

// silentError reports queues that do not transmit.
func silentError(name string, mode Mode, queues []int) error {
	return &modeError{mode, fmt.Sprintf("xdp: %s: %s in %s mode: a frame for each was given to the driver and did not come back in %v; choose another mode",
		name, list(queues)+" not transmit", mode, proofTimeout)}
}

// list names the queues, followed by "does" or "do".
func list(queues []int) string {
	if len(queues) == 1 {
		return fmt.Sprintf("queue %d does", queues[0])
	}
	return "queues " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(queues)), ", "), "[]") + " do"
}

// prove checks that every queue transmits, before Open reports the mode as granted. Without carrier the check always
// passes, because nothing can be transmitted. A driver that would send frames with a wrong header transmits none.
func (d *Device) prove() error {
	if d.Mode() == ZeroCopy && d.nic.strayHeader(d.name) {
		return &modeError{ZeroCopy, fmt.Sprintf("xdp: %s: as a loaded module the driver gives the device a wrong address for the header of each frame "+
			"in zero-copy mode, so the device may drop it: choose copy mode", d.name)}
	}
	dead := silentSockets(d.sockets, proofTimeout)
	if len(dead) == 0 || !d.routes.Refresh().Carrier {
		return nil
	}
	if d.addedQueues > 0 {
		return d.refuseAdded(list(dead) + " not transmit")
	}
	return silentError(d.name, d.Mode(), dead)
}

// refuseAdded returns the error of Open when the driver created queues for the XDP program and these queues cannot be
// used. The text of the error names the remedy: configure so many queues beforehand that the driver cannot create more.
func (d *Device) refuseAdded(why string) error {
	now, err := d.nic.channels(d.name)
	if err != nil {
		return err
	}
	return &openError{
		text: fmt.Sprintf("xdp: %s: the driver adds %d receive queues when an XDP program is attached, and %s: "+
			"choose so many queues that it cannot add any (ethtool -L %s combined %d)",
			d.name, d.addedQueues, why, d.name, now.most()-d.addedQueues+1),
		is: []error{link.ErrUnsupported},
	}
}

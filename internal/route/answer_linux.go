package route

import (
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
)

// answering is the state of Answer.
type answering struct {
	fib         atomic.Pointer[fib]
	macs        *macTable
	claims      *asks   // claims of unknown neighbours
	unconfirmed *asks   // claims that no probe has confirmed
	confirmed   *asks   // claims that a probe has confirmed
	prober      *prober // nil without the privilege
}

func newAnswering() answering {
	return answering{macs: newMACTable(), claims: newAsks(), unconfirmed: newAsks(), confirmed: newAsks()}
}

// Answer returns the MAC address of the next hop from src to dst, for an answer to a received packet. The address of src
// is the packet's destination IP address, and that of dst its source IP address, which may be forged. Both have no zone.
// ethSource is the packet's source MAC address. ok is false if there is no route to dst through the interface, or while
// the neighbour is unknown. An unknown neighbour is resolved in the background at a limited rate, so that a later call
// finds it. A neighbour that has confirmed its address to a probe is known at once, and is resolved first. A claim is
// ignored if ethSource is a group address or zero, which no station has.
//
// Answer makes no system call, takes no lock and allocates nothing. Any goroutine may call it.
func (t *Table) Answer(src, dst netip.AddrPort, ethSource [6]byte) (mac [6]byte, ok bool) {
	way, ok := t.fib.Load().way(flow{src, dst})
	if !ok {
		return mac, false
	}
	via := way.via
	e := t.macs.find(via)
	if e == nil || e.expired() {
		switch {
		case via == dst.Addr() && isStation(ethSource):
			t.claims.put(via, ethSource)
		case via != dst.Addr():
			t.confirmed.put(via, ethSource) // a gateway is in the routing table, so its address is not forged
		}
		return mac, false
	}
	if e.stale && !e.asked.Load() && !e.asked.Swap(true) {
		t.confirmed.put(via, ethSource) // the claim was confirmed before
	}
	return e.mac, true
}

// isStation reports whether a MAC address can be that of one station (IEEE 802: neither zero nor a group address). A
// probe to a group address would reach all its members.
func isStation(mac [6]byte) bool { return mac[0]&1 == 0 && mac != [6]byte{} }

// resolve asks the kernel to resolve the neighbours that Answer did not know. A token bucket limits the rate, because
// every forged address occupies an entry of the kernel's neighbour table for some time.
func (t *Table) resolve() {
	bucket := bucket{tokens: resolveBurst, at: time.Now()}
	for t.pause(bucket.wait(time.Now())) && t.await(t.confirmed) {
		addr, _, ok := t.confirmed.take()
		if !ok && bucket.tokens > resolveBurst/2 {
			addr, _, ok = t.unconfirmed.take()
			t.unconfirmed.epoch.Add(1)
		}
		if ok && t.wanting(addr) {
			t.kick(addr)
			bucket.tokens--
			t.confirmed.epoch.Add(1)
		}
		if ok { // there may be more claims
			t.confirmed.wakeUp()
		}
	}
}

// probe checks claims with the prober. A claim that cannot be probed counts as confirmed. Claims without an answer also
// get resolved, with half of the tokens, because a host may be unable to answer a probe.
func (t *Table) probe() {
	for t.pause(lookPause) && t.await(t.claims) {
		for range probeBatch {
			addr, from, ok := t.claims.take()
			if !ok {
				break
			}
			switch {
			case !t.wanting(addr):
			case t.prober.serves(addr):
				t.prober.send(t.iface.Load(), addr, from, time.Now())
				t.unconfirmed.put(addr, from)
				t.confirmed.wakeUp() // wakes resolve for both queues
			default:
				t.confirmed.put(addr, from)
			}
			t.claims.wakeUp() // there may be more claims
		}
		t.claims.epoch.Add(1)
	}
}

// listen starts a goroutine that reads the answers to probes from one of the prober's sockets.
func (t *Table) listen(f *os.File, parse func([]byte) (netip.Addr, bool)) {
	if f != nil {
		t.all.Go(func() { t.prober.listen(f, parse, t.confirm) })
	}
}

// confirm takes the answer to a probe: addr is at this MAC address. Answer uses it at once, for confirmedTime or until
// the kernel reports a state. So a neighbour does not wait for a token of resolve, which many confirmed claims share.
func (t *Table) confirm(addr netip.Addr, mac [6]byte) {
	t.mu.Lock()
	if t.seen[addr].mac == 0 && t.neighbours[addr] == nil {
		t.macs.put(&macEntry{addr: addr, mac: mac, at: time.Now()})
	}
	t.mu.Unlock()
	t.confirmed.put(addr, mac)
}

// pause sleeps for d and reports whether the table is still open.
func (t *Table) pause(d time.Duration) bool { return pause(t.done, d) }

// pause sleeps for d. It returns false as soon as done is closed.
func pause(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return false
	case <-timer.C:
		return true
	}
}

// await waits until a queue may have a claim, and reports whether the table is still open.
func (t *Table) await(a *asks) bool {
	select {
	case <-t.done:
		return false
	case <-a.wake:
		return true
	}
}

// bucket is a token bucket: one token per resolvePause, up to resolveBurst.
type bucket struct {
	tokens int
	at     time.Time // time up to which tokens were added
}

// refill adds the tokens of the time that has passed.
func (b *bucket) refill(now time.Time) {
	earned := int(now.Sub(b.at) / resolvePause)
	b.at = b.at.Add(time.Duration(earned) * resolvePause)
	b.tokens = min(b.tokens+earned, resolveBurst)
}

// wait returns the time until there is a token, but at least lookPause.
func (b *bucket) wait(now time.Time) time.Duration {
	if b.refill(now); b.tokens > 0 {
		return lookPause
	}
	return b.at.Add(resolvePause).Sub(now)
}

// take takes a token if more than the reserved number of tokens are left.
func (b *bucket) take(now time.Time, reserved int) bool {
	if b.refill(now); b.tokens <= reserved {
		return false
	}
	b.tokens--
	return true
}

// wanting reports whether the kernel must be asked to resolve a neighbour. It returns false while the kernel is already
// resolving the neighbour, and if the kernel knows the neighbour. The neighbour may have been missing in the table of
// Answer only for lack of room. wanting then adds it, if the kernel knows it or hops use it.
func (t *Table) wanting(addr netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[addr]
	if s.mac != 0 && s.state != netlink.NUD_STALE {
		t.note(addr, s)
		return false
	}
	if n := t.neighbours[addr]; n != nil && t.macs.find(addr) == nil {
		t.note(addr, s)
	}
	return s.state != netlink.NUD_INCOMPLETE
}

// note updates the table of Answer with the kernel's state of a neighbour. While the kernel resolves a neighbour again,
// the table keeps its MAC address. It also keeps that of a neighbour that hops use, as follow does. The caller holds mu.
func (t *Table) note(addr netip.Addr, s sighting) {
	stale := s.state == netlink.NUD_STALE
	if n := t.neighbours[addr]; n != nil && s.mac == 0 {
		s.mac, stale = n.mac, true
	}
	switch {
	case s.mac != 0:
		t.macs.put(&macEntry{addr: addr, mac: unpackMAC(s.mac), stale: stale})
	case s.state == 0, s.state == netlink.NUD_FAILED:
		t.macs.remove(addr)
	}
}

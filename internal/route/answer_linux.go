package route

import (
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
)

// Answer is the Ethernet address of the next hop to dst, for an answer to a packet that claims to be from there and
// came from an Ethernet address. ok is false while the neighbour is unknown: then it is resolved in the background, at a
// bounded rate and first if the Ethernet address confirms the claim, and a later call finds it; and where no route through
// the interface leads to dst.
//
// It makes no system call, takes no lock and allocates nothing. It may be called by any goroutine.
func (t *Table) Answer(dst netip.Addr, from [6]byte) (mac [6]byte, ok bool) {
	via, ok := t.prefixes.Load().via(dst)
	if !ok {
		return mac, false
	}
	e := t.macs.find(via)
	if e == nil {
		if via == dst {
			t.claims.put(via, from)
		} else {
			t.confirmed.put(via, from) // a gateway, which nobody has invented
		}
		return mac, false
	}
	if e.stale && !e.asked.Load() && !e.asked.Swap(true) {
		t.confirmed.put(via, from) // it has been confirmed once
	}
	return e.mac, true
}

// resolve asks the kernel for the neighbours that Answer did not know, at the rate of a token bucket: every invented
// address is an entry in the kernel's table for some time.
func (t *Table) resolve() {
	bucket := bucket{tokens: resolveBurst, at: time.Now()}
	for t.pause(bucket.wait(time.Now())) && t.await(t.confirmed) {
		addr, _, ok := t.confirmed.take()
		if !ok && bucket.tokens > resolveBurst/2 {
			addr, _, ok = t.doubtful.take()
			t.doubtful.epoch.Add(1)
		}
		if ok && t.wanting(addr) {
			t.kick(addr)
			bucket.tokens--
			t.confirmed.epoch.Add(1)
		}
		if ok { // there may be more
			t.confirmed.wakeUp()
		}
	}
}

// probe has claims confirmed. What cannot be probed counts as confirmed. What is not confirmed has half of the rate: a
// host may be unable to answer a probe.
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
				t.doubtful.put(addr, from)
				t.confirmed.wakeUp() // for both
			default:
				t.confirmed.put(addr, from)
			}
			t.claims.wakeUp() // there may be more
		}
		t.claims.epoch.Add(1)
	}
}

// listen takes in the answers to probes that come to one of the prober's sockets.
func (t *Table) listen(f *os.File, parse func([]byte) (netip.Addr, bool)) {
	if f != nil {
		t.all.Go(func() { t.prober.listen(f, parse, t.confirmed.put) })
	}
}

// pause reports whether the table is open after d.
func (t *Table) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.done:
		return false
	case <-timer.C:
		return true
	}
}

// await waits until there may be a claim, and reports whether the table is open.
func (t *Table) await(a *asks) bool {
	select {
	case <-t.done:
		return false
	case <-a.wake:
		return true
	}
}

// bucket is a token bucket: one token each resolvePause, up to resolveBurst.
type bucket struct {
	tokens int
	at     time.Time // until when tokens have been added
}

// wait is the time until there is a token, and never less than lookPause.
func (b *bucket) wait(now time.Time) time.Duration {
	earned := int(now.Sub(b.at) / resolvePause)
	b.at = b.at.Add(time.Duration(earned) * resolvePause)
	if b.tokens = min(b.tokens+earned, resolveBurst); b.tokens > 0 {
		return lookPause
	}
	return b.at.Add(resolvePause).Sub(now)
}

// wanting reports whether the kernel has to be asked for a neighbour: not if it asks already, or knows it and the
// table of Answer had no place for it.
func (t *Table) wanting(addr netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[addr]
	if s.mac != 0 && s.state != netlink.NUD_STALE {
		t.note(addr, s)
		return false
	}
	return s.state != netlink.NUD_INCOMPLETE
}

// note brings the table of Answer to what the kernel knows of a neighbour. A neighbour that is being resolved
// anew keeps its address. It is called with mu held.
func (t *Table) note(addr netip.Addr, s sighting) {
	switch {
	case s.mac != 0:
		t.macs.put(&macEntry{addr: addr, mac: unpackMAC(s.mac), stale: s.state == netlink.NUD_STALE})
	case s.state == 0, s.state == netlink.NUD_FAILED:
		t.macs.remove(addr)
	}
}

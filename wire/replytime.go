package wire

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/speck"
)

// replyLimits are the limits of replies without a connection.
type replyLimits struct {
	replyLimit replyLimiter
	replyTime  replyTime
	shed       shedding
}

// replyTime limits the time that an engine spends in link.Send for replies. Replies are the packets that a peer causes
// without an established connection: Challenge, Reject, Accept, Reset, Closed and Versions, and the Close of a
// connection that the peer has never confirmed. The time depends on the destination: Linux runs the receive path of a
// destination on the same host within the system call that sends. That path includes the ingress rules of the
// destination's network namespace and the filter of the destination's socket.
//
// A reply that leaves alone is measured, which is expensive. One reply of replySample is measured, and each reply to a
// suspect: an address whose last samples were slow, or whose network's were. So is each reply while the account of the
// engine is ahead of the clock.
//
// Each address, each network and the engine have an account. A slow reply, and a reply to an address with slow replies,
// is charged to all three. A reply leaves only if none of them is overdrawn. An account implements the generic cell rate algorithm (ITU-T I.371): a reply moves the account
// forward by the reply's time divided by the account's share of a processor. The account is overdrawn while it is more
// than a tolerance ahead of the clock. Two rules protect honest peers from peers that make replies slow:
//   - For an address without slow replies, the accounts of its network and of the engine have a larger tolerance. So
//     addresses with slow replies do not use up the shares of others.
//   - Each slow reply doubles the price of later replies to the address, and each other reply halves it.
//
// A reply also takes long if the thread loses its processor meanwhile: to another program, or because a quota is used up.
// Such a sample is doubtful, since it says nothing about the address. It is charged only if the address is a suspect
// already. Otherwise a flood of Connects from forged addresses would pause the replies of a host that is short of
// processor time.
//
// The accounts are in hash tables of fixed size, as in stochastic fairness queueing (McKenney, 1990). The hash has a
// secret key, so an attacker cannot choose addresses that share the account of a victim.
type replyTime struct {
	clock     func() Time   // nil: the time is unknown and not limited
	switches  func() uint64 // how often the thread has lost its processor; nil: unknown
	hash      *speck.Key
	engine    replyAccount
	networks  [256]replyAccount
	addresses [1024]replyAccount
	unsampled int // replies since the last measured one
}

// replyAccount is the account of an address, a network or an engine.
type replyAccount struct {
	paidAt Time  // when the replies that have left are within the share
	slow   uint8 // slow replies, less the others, from 0 to replyPrice; not used for an engine
}

func newReplyTime(h *Host) replyTime {
	return replyTime{clock: h.clock, switches: h.switches, hash: h.keys}
}

// accounts returns the accounts of an address and of its network.
func (r *replyTime) accounts(a netip.Addr) (addr, network *replyAccount) {
	host, prefix := holders(a)
	return &r.addresses[r.slot(host, len(r.addresses))], &r.networks[r.slot(prefix, len(r.networks))]
}

// slot returns the place of a prefix in a table of n accounts.
func (r *replyTime) slot(p netip.Prefix, n int) uint32 {
	b, v := p.Addr().As16(), uint32(p.Bits())
	for w := b[:]; len(w) > 0; w = w[4:] {
		v = r.hash.Encrypt(v ^ binary.BigEndian.Uint32(w))
	}
	return v % uint32(n)
}

// allows reports whether a reply may leave to an address.
func (r *replyTime) allows(to netip.Addr, now Time) bool {
	addr, network := r.accounts(to)
	tolerance := replyNeighbour
	if addr.slow > 0 {
		tolerance = replyTolerance
	}
	return addr.paidAt.Sub(now) <= replyTolerance &&
		network.paidAt.Sub(now) <= tolerance && r.engine.paidAt.Sub(now) <= tolerance
}

func (r *replyTime) countSwitches() uint64 {
	if r.switches == nil {
		return 0
	}
	return r.switches()
}

// suspects reports whether the last samples of an address or of its network were slow.
func (r *replyTime) suspects(a netip.Addr) bool {
	addr, network := r.accounts(a)
	return addr.slow > 0 || network.slow > 0
}

// measures reports whether the next reply, which is to an address, is measured.
func (r *replyTime) measures(to netip.Addr, now Time) bool {
	r.unsampled++
	if r.clock == nil || r.unsampled < replySample && now >= r.engine.paidAt && !r.suspects(to) {
		return false
	}
	r.unsampled = 0
	return true
}

// sample is the measurement of a reply.
type sample struct {
	took     time.Duration
	doubtful bool // the thread has lost its processor meanwhile
}

// charge charges a reply to an address, unless neither the reply nor those before it were slow.
func (r *replyTime) charge(to netip.Addr, s sample, now Time) {
	addr, network := r.accounts(to)
	slow, suspect := s.took >= slowReply, r.suspects(to)
	if slow && (suspect || !s.doubtful) || addr.slow > 0 {
		most := replyPause
		if !suspect {
			most = replyNeighbour / 2 // one sample does not pause the others
		}
		addr.charge(s.took<<addr.slow*replyAddress, now)
		network.charge(min(s.took*replyNetwork, most), now)
		r.engine.charge(min(s.took*replyEngine, most), now)
	}
	addr.note(slow)
	network.note(slow)
}

// note counts a slow reply, or another one.
func (a *replyAccount) note(slow bool) {
	switch {
	case slow:
		a.slow = min(a.slow+1, replyPrice)
	case a.slow > 0:
		a.slow--
	}
}

// charge moves the account forward by d.
func (a *replyAccount) charge(d time.Duration, now Time) {
	a.paidAt = min(max(a.paidAt, now).Add(d), now.Add(replyPause))
}

// mayReplyTo reports whether the engine may send a reply to an address. If not, it counts the reply.
func (e *Engine) mayReplyTo(to netip.Addr) bool {
	if e.replyTime.allows(to, e.now) {
		return true
	}
	e.stats.RepliesPaused++
	return false
}

// sendReply sends a reply in the frame of a received packet, to the source address of that packet.
func (e *Engine) sendReply(b link.Buf) {
	to := e.source(&b)
	measured := e.beginReply(to)
	e.tx = append(e.tx, b)
	e.endReply(to, measured)
}

// beginReply begins a reply to an address, which the caller then appends to tx. It reports whether the reply is measured. A measured
// reply leaves alone.
func (e *Engine) beginReply(to netip.Addr) (measured bool) {
	if measured = e.replyTime.measures(to, e.now); measured {
		e.flush()
	}
	return measured
}

// endReply ends the reply that beginReply began. It hands a measured reply to the link, and charges the time that this
// takes to the address.
func (e *Engine) endReply(to netip.Addr, measured bool) {
	switch {
	case !measured && len(e.tx) < maxTransmit:
	case !measured || len(e.tx) == 0: // there was no frame for the reply
		e.flush()
	default:
		r := &e.replyTime
		switches, start := r.countSwitches(), r.clock()
		e.flush()
		end := r.clock()
		r.charge(to, sample{end.Sub(start), r.countSwitches() != switches}, end)
	}
}

package wire

import "net/netip"

// maxUsedConnects is the number of Connects that an engine remembers in each of two sets. So an engine opens at most that
// many messages 1 in a cookie period, 4369 each second.
const maxUsedConnects = 1 << 16

// usedShare and usedPrefix divide the Connects of a period. An address may use at most usedShare × the number of free
// places, so an address that is alone uses 32768, which are 2184 connects each second. A network may use at most
// usedPrefix × the number of free places, 52429 if it is alone.
const (
	usedShare  = 1
	usedPrefix = 4
)

// usedConnects are the hashes of the Connects whose message 1 was opened. A Connect that an attacker sends again makes no
// further request. The cookie in a Connect is valid in two periods, so its hash is remembered for two. The cookie itself
// would not do: the attacker may have used it before, with a message 1 of its own, if it has a key too.
type usedConnects struct {
	period        int64
	current, last map[uint64]struct{} // used in this period, and in the one before
	shares        quota               // used in this period by address
}

// turn moves to a period.
func (u *usedConnects) turn(period int64) {
	switch {
	case period == u.period:
		return
	case period == u.period+1:
		u.last = u.current
	default:
		u.last = nil
	}
	u.period, u.current, u.shares = period, nil, quota{}
}

// mayUse reports whether a Connect is unused, and whether there is room for a further Connect of an address.
func (u *usedConnects) mayUse(connect uint64, from netip.Addr) (unused, room bool) {
	_, now := u.current[connect]
	_, before := u.last[connect]
	return !now && !before, u.current == nil || u.shares.hasPlace(from)
}

func (u *usedConnects) add(connect uint64, from netip.Addr) {
	if u.current == nil {
		u.current = make(map[uint64]struct{})
		u.shares = newQuota(maxUsedConnects, usedShare, usedPrefix)
	}
	if _, known := u.current[connect]; !known {
		u.current[connect] = struct{}{}
		u.shares.addPlace(from)
	}
}

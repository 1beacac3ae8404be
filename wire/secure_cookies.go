package wire

import "net/netip"

// maxUsedCookies is the number of cookies that an engine remembers in each of two sets. So an engine opens at most that
// many messages 1 in a cookie period, 4369 each second.
const maxUsedCookies = 1 << 16

// cookieShare and cookiePrefix divide the cookies of a period. An address may use at most cookieShare × the number of free
// ones, so an address that is alone uses 32768, which are 2184 connects each second. A network may use at most cookiePrefix ×
// the number of free ones, 52429 if it is alone.
const (
	cookieShare  = 1
	cookiePrefix = 4
)

// usedCookies are the cookies of the Connects whose message 1 was opened. One cookie makes one request, so a Connect that
// an attacker sends again makes no further one. A cookie is valid in two periods, so it is remembered for two.
type usedCookies struct {
	period        int64
	current, last map[uint64]struct{} // cookies used in this period, and in the one before
	shares        quota               // cookies used in this period by address
}

// turn moves to a period.
func (u *usedCookies) turn(period int64) {
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

// mayUse reports whether a cookie is unused, and whether there is room for a further cookie of an address.
func (u *usedCookies) mayUse(cookie uint64, from netip.Addr) (unused, room bool) {
	_, now := u.current[cookie]
	_, before := u.last[cookie]
	return !now && !before, u.current == nil || u.shares.hasPlace(from)
}

func (u *usedCookies) add(cookie uint64, from netip.Addr) {
	if u.current == nil {
		u.current = make(map[uint64]struct{})
		u.shares = newQuota(maxUsedCookies, cookieShare, cookiePrefix)
	}
	if _, known := u.current[cookie]; !known {
		u.current[cookie] = struct{}{}
		u.shares.addPlace(from)
	}
}

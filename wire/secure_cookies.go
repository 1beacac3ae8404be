package wire

// maxUsedCookies is the number of cookies that an engine remembers in each of two sets. So an engine opens at most that
// many messages 1 in a cookie period, 4369 each second.
const maxUsedCookies = 1 << 16

// usedCookies are the cookies of the Connects whose message 1 was opened. One cookie makes one request, so a Connect that
// an attacker sends again makes no further one. A cookie is valid in two periods, so it is remembered for two.
type usedCookies struct {
	period        int64
	current, last map[uint64]struct{} // cookies used in this period, and in the one before
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
	u.period, u.current = period, nil
}

// mayUse reports whether a cookie is unused, and whether there is room for it.
func (u *usedCookies) mayUse(cookie uint64) (unused, room bool) {
	_, now := u.current[cookie]
	_, before := u.last[cookie]
	return !now && !before, len(u.current) < maxUsedCookies
}

func (u *usedCookies) add(cookie uint64) {
	if u.current == nil {
		u.current = make(map[uint64]struct{})
	}
	u.current[cookie] = struct{}{}
}

package wire

import "github.com/datxdp/datxdp/wire/internal/wheel"

// timers has one timer for each slot of the connection table. One Poll handles a bounded number of timers, because a
// timer may send a packet. If more are due, the others wait.
//
// A peer can make the timers of its connections fire at the rate of its packets. So the timers that are due take turns,
// by network, address and connection (see turns): the timers of one network do not delay those of another.
//
// While tens of thousands of peers are silent, the engine may handle their timers all the time, and each timer is late.
// Other peers must not wait for these timers. So the timers of silent peers are in a wheel of their own. A Poll handles
// the due timers of the other wheel first, and then as many timers of silent peers as the bound allows, at least one.
// These are not in turns.
type timers struct {
	prompt, silent *wheel.Wheel
	due            func(slot int32)   // queues a connection whose prompt timer is due
	runDue         func(left int) int // runs queued timers as tickDue does
	fire           func(slot int32)
}

func newTimers(now Time, due func(slot int32), runDue func(left int) int, fire func(slot int32)) timers {
	return timers{wheel.New(int64(now)), wheel.New(int64(now)), due, runDue, fire}
}

// set arms the timer of a slot, or arms it again. The argument unanswered is the number of packets that asked the peer
// for an answer, and that got none.
func (t *timers) set(slot int32, deadline Time, unanswered int) {
	in, other := t.prompt, t.silent
	if unanswered >= silentAfter {
		in, other = other, in
	}
	other.Stop(slot)
	in.Set(slot, int64(deadline))
}

func (t *timers) stop(slot int32) {
	t.prompt.Stop(slot)
	t.silent.Stop(slot)
}

// run fires timers that are due. At most maxTimers of them do work.
func (t *timers) run(now Time) {
	t.prompt.Advance(int64(now), maxDue, t.due)
	left := t.runDue((maxTimers - 1) * idleTimers)
	t.silent.Advance(int64(now), left/idleTimers+1, t.fire)
}

// next returns a time before which no timer fires. It reports false if no timer is armed.
func (t *timers) next() (Time, bool) {
	prompt, some := t.prompt.Next()
	silent, more := t.silent.Next()
	switch {
	case !some:
		return Time(silent), more
	case !more:
		return Time(prompt), true
	}
	return Time(min(prompt, silent)), true
}

// armed returns the number of armed timers.
func (t *timers) armed() int { return t.prompt.Len() + t.silent.Len() }

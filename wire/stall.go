package wire

import "time"

// An engine that nobody polled for long, though a timer was due or packets came, was stopped with its process
// or its host. It could not hear its peers then, so that this time does not count as their silence. What they
// sent waits in the link, as much of it as fitted there, and is read before the timers run. Then each peer gets
// an Ack, since its timeouts are long by now and packets of it may have been dropped.

// stall is the engine's part of that.
type stall struct {
	gap   bool // this Poll comes long after the one before
	over  Time // end of the last stall
	catch bool // what arrived meanwhile is being read
	left  int  // slots of the table whose peers have not got their Ack yet
	at    Time // when the next of them get it
}

// resume notes the end of a stall. It is called at the beginning of a Poll.
func (e *Engine) resume(now Time) {
	e.stall.gap = now.Sub(e.now) >= stallTime
	if !e.stall.gap {
		return
	}
	if at, ok := e.wheel.Next(); ok && now.Sub(Time(at)) >= stallTime {
		e.endStall(now)
	}
}

// endStall begins to catch up.
func (e *Engine) endStall(now Time) {
	e.stall = stall{over: now, catch: true, left: len(e.table.slots)}
}

// catchingUp reports whether timers have to wait: a Poll that filled its batch after a stall has not seen
// yet what the peers sent, and would resend what they acknowledged.
func (e *Engine) catchingUp(received int) bool {
	s := &e.stall
	full := received >= maxReceive
	if s.gap && full && !s.catch {
		e.endStall(e.now) // no timer was due, but one packet is reason enough to poll
	}
	s.catch = s.catch && full && e.now.Sub(s.over) < catchUp
	return s.catch
}

// announce sends some peers an Ack after a stall.
func (e *Engine) announce() {
	s := &e.stall
	if s.catch || e.now < s.at {
		return
	}
	for n := 0; s.left > 0 && n < announceBatch; s.left-- {
		if c := e.table.slots[s.left-1].conn; c != nil && c.alive() {
			if !c.sendAck(0) {
				break // no frame: later
			}
			n++
		}
	}
	s.at = e.now.Add(announceEvery)
}

// watched is the time since a moment, or since the last stall if that ended later.
func (e *Engine) watched(since Time) time.Duration { return e.now.Sub(max(since, e.stall.over)) }

package wire

import "testing"

func TestDelayedAck(t *testing.T) {
	const poll = 7
	for _, tt := range []struct {
		name       string
		do         func(a *delayedAck)
		now, later bool // an Ack is due in this Poll, and in the next one
	}{
		{"nothing", func(a *delayedAck) {}, false, false},
		{"a packet", func(a *delayedAck) { a.packets++ }, false, false},
		{"many packets", func(a *delayedAck) { a.packets = ackEvery }, true, true},
		{"a repeat", func(a *delayedAck) { a.immediate = true }, true, true},
		{"asked for", func(a *delayedAck) { a.ask(poll) }, false, true},
		{"asked for, and answered", func(a *delayedAck) { a.ask(poll); a.packets = ackEvery; a.immediate = true; a.reset() }, false, false},
	} {
		a := delayedAck{deadline: never, inAcks: true}
		if tt.do(&a); a.isDue(poll) != tt.now || a.isDue(poll+1) != tt.later {
			t.Errorf("%s: due %v, %v; want %v, %v", tt.name, a.isDue(poll), a.isDue(poll+1), tt.now, tt.later)
		}
		if !a.inAcks {
			t.Errorf("%s: it is not in the list any more", tt.name)
		}
	}
	var a delayedAck
	if !a.ask(poll) || a.ask(poll+1) || a.requestPoll != poll {
		t.Error("a second question moves the first one")
	}
}

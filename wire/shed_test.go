package wire

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// shedLink records what it is to drop.
type shedLink struct{ from netip.Addr }

func (l *shedLink) Shed(from netip.Addr, value, mask byte) {
	l.from = from
	if from.IsValid() && (value != byte(proto.Connect) || mask != proto.TypeMask) {
		panic("not the Connects")
	}
}

// The Connects of an address are dropped by the link only if there are many in a short time, and only for shedTime.
func TestShedding(t *testing.T) {
	l := &shedLink{}
	s := shedding{link: l}
	one, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	now := Time(1e9)
	for range 10 * shedCount { // slowly
		now = now.Add(shedPeriod / (shedCount / 2))
		s.note(one, now)
	}
	for range shedCount { // two addresses in turn
		s.note(one, now)
		s.note(other, now)
	}
	if l.from.IsValid() {
		t.Fatalf("%v is shed", l.from)
	}
	for range shedCount {
		s.note(other, now)
	}
	if l.from != other {
		t.Fatalf("%v is shed, want %v", l.from, other)
	}
	s.check(now.Add(shedTime - 1))
	if l.from != other {
		t.Error("too early: nothing is shed")
	}
	s.check(now.Add(shedTime))
	if l.from.IsValid() {
		t.Error("shed for longer than shedTime")
	}
	none := shedding{}
	for range 2 * shedCount {
		none.note(one, now)
	}
}

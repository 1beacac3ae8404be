package seal

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// few are limits that a test reaches.
var few = Limits{Packets: 100, Update: 10, Age: time.Hour, Failures: 1 << 20}

// exchange seals a packet at one end and opens it at the other one.
func exchange(t *testing.T, from, to *Session) {
	t.Helper()
	expect(t, "packet", open(to, sealed(t, from, 1, 0), 0), Opened)
}

func phases(t *testing.T, what string, s *Session, send, receive uint32) {
	t.Helper()
	if gotSend, gotReceive := s.Phases(); gotSend != send || gotReceive != receive {
		t.Fatalf("%s is in phases %d and %d, want %d and %d", what, gotSend, gotReceive, send, receive)
	}
}

// TestUpdate follows one key update.
func TestUpdate(t *testing.T) {
	a, b := pair(t, few)
	late := sealed(t, a, 1, 0)
	lateFromB := sealed(t, b, 1, 0)
	veryLate, veryLateFromB := sealed(t, a, 1, 0), sealed(t, b, 1, 0)
	exchange(t, b, a)
	for range 8 {
		exchange(t, a, b)
	}
	phases(t, "the leader", a, 0, 0)
	exchange(t, a, b) // the 11th packet: Update are sealed
	phases(t, "the leader", a, 1, 0)
	phases(t, "the follower", b, 1, 1)
	exchange(t, b, a)
	phases(t, "the leader", a, 1, 1)
	expect(t, "a late packet", open(b, late, 0), Opened)
	expect(t, "a late packet", open(a, lateFromB, 0), Opened)
	if !a.Expire(9, 10) || !b.Expire(9, 10) {
		t.Fatal("the key before is dropped too early")
	}
	if a.Expire(10, 10) || b.Expire(10, 10) {
		t.Fatal("the key before stays")
	}
	expect(t, "a late packet without key", open(b, veryLate, 0), NoKey)
	expect(t, "a late packet without key", open(a, veryLateFromB, 0), NoKey)
	exchange(t, a, b)
	exchange(t, b, a)
	if a.Failures()+b.Failures() != 0 {
		t.Error("packets were tried with wrong keys")
	}
}

// TestUpdateByReceiving starts an update because the peer's packets are many.
func TestUpdateByReceiving(t *testing.T) {
	a, b := pair(t, few)
	for range 10 {
		exchange(t, b, a)
	}
	exchange(t, a, b)
	phases(t, "the leader", a, 1, 0)
	phases(t, "the follower", b, 1, 1)
}

func TestUpdateByAge(t *testing.T) {
	a, b := pair(t, LimitsFor(1500))
	exchange(t, b, a)
	sealed(t, a, 1, 3599e9)
	phases(t, "the leader", a, 0, 0)
	expect(t, "packet", open(b, sealed(t, a, 1, 3600e9), 3600e9), Opened)
	phases(t, "the leader", a, 1, 0)
	expect(t, "packet", open(a, sealed(t, b, 1, 3600e9), 3600e9), Opened)
	a.Expire(3600e9, 0)
	sealed(t, a, 1, 7199e9)
	phases(t, "the leader", a, 1, 1)
	sealed(t, a, 1, 7200e9)
	phases(t, "the leader", a, 2, 1)
}

// TestOneUpdateAtATime checks that the leader waits for a packet in the new phase, and for the end of the key before.
func TestOneUpdateAtATime(t *testing.T) {
	a, b := pair(t, few)
	exchange(t, b, a)
	for range 50 {
		sealed(t, a, 1, 0) // lost
	}
	phases(t, "the leader", a, 1, 0)
	exchange(t, b, a) // still of the first phase
	exchange(t, a, b)
	exchange(t, b, a)
	phases(t, "the leader", a, 1, 1)
	for range 12 {
		exchange(t, a, b)
	}
	phases(t, "the leader", a, 1, 1)
	a.Expire(1, 1)
	exchange(t, a, b) // the follower still has the key before, and drops it
	phases(t, "the leader", a, 2, 1)
	phases(t, "the follower", b, 2, 2)
	exchange(t, b, a)
	phases(t, "the leader", a, 2, 2)
}

// TestFollowerStartsNoUpdate checks that packets of a phase that the peer cannot be in open at neither end.
func TestFollowerStartsNoUpdate(t *testing.T) {
	a, b := pair(t, few)
	exchange(t, b, a)
	exchange(t, a, b)
	for range 20 {
		sealed(t, b, 1, 0)
	}
	phases(t, "the follower", b, 0, 0)
	b.advance(0)
	expect(t, "an update by the follower", open(a, sealed(t, b, 1, 0), 0), NoKey)

	a, b = pair(t, few)
	a.advance(0)
	expect(t, "an update before the follower has sent", open(b, sealed(t, a, 1, 0), 0), NoKey)
	exchange(t, b, a)
	exchange(t, a, b)
	phases(t, "the follower", b, 1, 1)
	a.advance(0)
	expect(t, "an update before the follower has sent in its phase", open(b, sealed(t, a, 1, 0), 0), NoKey)
	phases(t, "the follower", b, 1, 1)
}

// TestForgedPhase checks that a forged phase bit changes no phase, and costs one derivation.
func TestForgedPhase(t *testing.T) {
	a, b := pair(t, few)
	exchange(t, a, b)
	exchange(t, b, a)
	forged := sealed(t, a, 1, 0)
	forged[proto.OffFlags] ^= phaseFlag(1)
	expect(t, "forged", open(b, forged, 0), Forged)
	after := b.recv.after.aead
	expect(t, "forged again", open(b, forged, 0), Forged)
	if after == nil || b.recv.after.aead != after {
		t.Error("the next key was made twice")
	}
	phases(t, "the follower", b, 0, 0)
	for range 10 {
		exchange(t, a, b)
	}
	phases(t, "the follower", b, 1, 1)
}

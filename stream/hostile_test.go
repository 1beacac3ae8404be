package stream

import "testing"

// A peer that switches to a ring which was not announced to it must end the stream. Otherwise the announcement, which is
// still to be sent, would name a ring that is in use already.
func TestSwitchBeforeAnnouncement(t *testing.T) {
	c := &Conn{}
	c.in.first.buf = make([]byte, minRing)
	c.in.announced.buf, c.out.announce = make([]byte, 4*minRing), true
	if err := c.control(control{kind: controlSwitch}); err != errProtocol {
		t.Errorf("switch before the announcement: %v, want %v", err, errProtocol)
	}
	if c.in.announced.buf == nil || c.in.growing() {
		t.Error("the ring is in use")
	}
}

package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Attack 3: a peer that is silent once its connection is established gets no Probe, which is a large packet, but
// short questions, fewer and fewer of them, until it is given up.
func TestAttack03SilentAfterReady(t *testing.T) {
	s := newSiege(t)
	cv, cf := s.victim.host.NewConn(plain), s.foe.host.NewConn(plain)
	s.foe.down = false
	s.dial(s.foe, s.victim, cf, nil)
	s.until("the foe's request", time.Second, func() bool { return len(s.victim.arrived) > 0 })
	s.accept(s.victim, cv, nil)
	s.until("the victim's end", time.Second, func() bool { return cv.State() == Established })
	s.foe.down = true
	s.drain()
	s.out = traffic{}
	lim := &s.victim.host.limits
	s.until("the end", lim.KeepAlive+2*lim.GiveUp, func() bool { s.drain(); return cv.State() == Closed })
	s.run(2 * time.Second)
	s.drain()
	if n := s.out.types[proto.Probe]; n != 0 {
		t.Errorf("%d Probes", n)
	}
	if s.out.packets > 80 || s.out.bytes > 6000 {
		t.Errorf("%d packets, %d bytes to a silent peer", s.out.packets, s.out.bytes)
	}
	s.want(s.victim.connect, KindEstablished)
	s.want(s.victim.connect, KindBroken)
	s.finish()
}

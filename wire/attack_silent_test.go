package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Attack 3: a peer is silent after its connection is established. The victim may send the peer only short packets, at
// growing intervals, until the connection breaks. The victim must not send a Probe, which is a large packet.
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

// Attack 21: a requester that never confirms its accepted request may get only few Accepts, however large they are.
func TestAttack21AcceptsAreFew(t *testing.T) {
	s := newSiege(t)
	s.connect(s.foe.addr, 9)
	path, err := s.victim.link.Resolve(s.foe.addr, 0)
	if err == nil {
		err = s.victim.eng.Accept(s.victim.arrived[0], s.victim.host.NewConn(plain), path, make([]byte, 500), s.victim.completions())
	}
	if err != nil {
		t.Fatal(err)
	}
	s.guise.as, s.victim.arrived = nil, nil
	s.foe.down = true
	for end := s.net.Now() + int64(s.victim.host.limits.GiveUp+3*time.Second); s.net.Now() < end; {
		s.run(100 * time.Millisecond)
		s.drain()
	}
	if n := s.out.types[proto.Accept]; n == 0 || n > 24 {
		t.Errorf("%d Accepts in %v", n, s.victim.host.limits.GiveUp)
	}
	s.want(s.victim.connect, KindAcceptFailed)
	s.finish()
}

// Attack 3: repeats of a Connect that was rejected with long private data may get only few answers.
func TestAttack03RejectRepeats(t *testing.T) {
	s := newSiege(t)
	s.connect(s.foe.addr, 9)
	path, err := s.victim.link.Resolve(s.foe.addr, 0)
	if err == nil {
		err = s.victim.eng.Reject(s.victim.arrived[0], path, make([]byte, proto.MaxPrivateData))
	}
	if err != nil {
		t.Fatal(err)
	}
	start := s.net.Now()
	for range 1000 {
		s.connect(s.foe.addr, 9)
	}
	s.guise.as, s.victim.arrived = nil, nil
	if n, most := s.out.types[proto.Reject], int((s.net.Now()-start)/int64(helloRetry))+2; n == 0 || n > most {
		t.Errorf("%d Rejects in answer to 1000 repeats, want %d at most", n, most)
	}
	s.finish()
}

// Attack 3: the unfinished handshakes of many clients must end in many Polls, not in a single one.
func TestAttack03HandshakesThatEndTogether(t *testing.T) {
	s := newSiege(t)
	const crowd = 400
	for i := range crowd {
		s.connect(s.foe.addr, uint32(i)+1)
	}
	for _, r := range s.victim.arrived {
		path, err := s.victim.link.Resolve(s.foe.addr, 0)
		if err == nil {
			err = s.victim.eng.Accept(r, s.victim.host.NewConn(plain), path, nil, s.victim.completions())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.guise.as, s.victim.arrived = nil, nil
	s.foe.down = true
	e, ended := s.victim.eng, 0
	for end := s.net.Now() + int64(e.host.limits.GiveUp+time.Second); s.net.Now() < end && ended < crowd; {
		before := s.victim.connect.Len()
		s.step()
		n := s.victim.connect.Len() - before
		if n > maxTimers {
			t.Fatalf("%d handshakes ended in one Poll", n)
		}
		for ended += n; s.victim.connect.Len() > 0; {
			s.victim.connect.Pop(new(Completion))
		}
		s.drain()
	}
	if ended != crowd {
		t.Errorf("%d of %d handshakes ended", ended, crowd)
	}
	s.finish()
}

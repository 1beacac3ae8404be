package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Attack 3: an attacker with valid cookies sends messages 1 that do not open. Its requests leave nothing, and another
// requester of its address connects at once.
func TestAttack03HandshakeGarbage(t *testing.T) {
	const garbage = 1000
	m := newMITM(t, false)
	e := m.b.eng
	form, keyID := m.noise.Form()
	for i := range uint32(garbage) {
		h := proto.Header{Type: proto.Connect, PSN: 1}
		hi := proto.Hello{CID: i + 1, Tag: i + 1, MTU: 1472, Window: minPeerWindow, Qual: service, UDPPort: m.a.addr.Port(),
			Noise: noiseHead(form, keyID, proto.Connect), Private: make([]byte, proto.SealSize)}
		hi.Cookie = e.makeCookie(&requestKey{from: m.a.addr}, &h, &hi, e.cookiePeriod())
		m.forge(m.a, m.b, packetOf(h, helloOf(&hi)))
	}
	if n := e.stats.Unopened; n != garbage {
		t.Errorf("%d messages were read, want %d", n, garbage)
	}
	if len(e.requests) != 0 || e.halfOpen.used != 0 || len(m.b.arrived) != 0 {
		t.Errorf("%d requests, %d half-open", len(e.requests), e.halfOpen.used)
	}
	c := m.attempt(nil)
	m.until("the request", 2*helloRetry, func() bool { return len(m.b.arrived) > 0 })
	m.welcome(c)
}

// Attack 3: an attacker on the path sends changed copies of each Connect with a message 1 just before it. The attempt makes
// one request all the same, and connects without a further try.
func TestAttack03ForgedCopies(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		note := m.up.show
		m.up.show = func(b []byte) {
			note(b)
			if typeOf(b) != proto.Connect || helloIn(t, b).Noise == nil {
				return
			}
			end := len(b) - proto.TrailerSize
			for _, i := range []int{16, proto.HeaderSize + proto.HelloSize + 2 + proto.NoiseFixed, end - 1} { // TS, head, payload
				m.inject(m.a, m.b, changed(b, i, 1))
			}
		}
		c := m.attempt([]byte("hello"))
		m.until("the request", 2*helloRetry, func() bool { return len(m.b.arrived) > 0 })
		if n := m.b.eng.stats.Unopened; n == 0 {
			t.Error("no copy was read")
		}
		m.welcome(c)
		m.run(time.Second)
		if len(m.b.arrived) != 0 {
			t.Errorf("%d further requests", len(m.b.arrived))
		}
	})
}

// Attack 4: an attacker on the path sends Challenges of its own before the first real one, another one behind each real one,
// and others all the time. It drops nothing, so the attempt connects long before it times out.
func TestAttack04ForgedChallengesAllTheTime(t *testing.T) {
	for _, every := range []time.Duration{time.Hour, 20 * time.Millisecond, 2 * time.Millisecond} {
		eachForm(t, func(t *testing.T, m *mitm) {
			due, forged := promptOffers-1, uint64(0)
			note := m.down.show
			m.down.show = func(b []byte) {
				if note(b); typeOf(b) == proto.Challenge {
					due++
				}
			}
			c := m.attempt(nil)
			next := m.net.Now() + int64(every)
			m.until("the request", 5*time.Second, func() bool {
				if m.net.Now() >= next {
					next = m.net.Now() + int64(every)
					due++
				}
				for ; due > 0; due-- {
					forged++
					h := proto.Header{Type: proto.Challenge, CID: c.cid, Tag: c.tag, Ack: c.sent.Una}
					m.inject(m.b, m.a, packetOf(h, helloOf(&proto.Hello{CID: c.cid, Cookie: forged})))
				}
				return len(m.b.arrived) > 0
			})
			m.welcome(c)
		})
	}
}

// Attack 4: one Challenge of an attacker comes after the real one, and the message 1 for the real one is lost once. The
// server repeats its Challenge, so the requester sends that message 1 again. It does not wait for the next cookie period.
func TestAttack04ForgedChallengeAndLoss(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		lost := false
		m.up.drop = func(b []byte) bool {
			first := !lost && typeOf(b) == proto.Connect && helloIn(t, b).Noise != nil
			lost = lost || first
			return first
		}
		c := m.attempt(nil)
		m.until("the message 1", time.Second, func() bool { return lost })
		h := proto.Header{Type: proto.Challenge, CID: c.cid, Tag: c.tag, Ack: c.sent.Una}
		m.forge(m.b, m.a, packetOf(h, helloOf(&proto.Hello{CID: c.cid, Cookie: 1})))
		m.until("the request", time.Second, func() bool { return len(m.b.arrived) > 0 })
		if c.dial.opening.find(1) == nil {
			t.Error("the forged Challenge was not answered, so the test tests nothing")
		}
		m.welcome(c)
	})
}

// Attack 4: a requester does not know the server's key, and an attacker on the path puts a copy of each Challenge with
// another key before or behind it, once or each time. It drops nothing, so the attempt connects, with the server's key.
func TestAttack04ForgedServerKey(t *testing.T) {
	other, lowOrder := [32]byte(keyOf("somebody else, with 32 bytes of.").Public()), [32]byte{1}
	for name, tc := range map[string]struct {
		key    [32]byte
		most   int // Challenges that are copied
		copies int // of each
		behind bool
	}{
		"one before":        {other, 1, 1, false},
		"one behind":        {other, 1, 1, true},
		"many before":       {other, 1, 5, false},
		"many behind":       {other, 1, 5, true},
		"always before":     {other, 1000, 2, false},
		"always behind":     {other, 1000, 2, true},
		"always, many":      {other, 1000, 3, false},
		"low order, once":   {lowOrder, 1, 1, false},
		"low order, before": {lowOrder, 1000, 2, false},
		"low order, behind": {lowOrder, 1000, 2, true},
		"zero":              {[32]byte{}, 1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range uint64(10) {
				m := newMITMOf(t, i/2*4+i%2) // both with IK
				key := [32]byte(testKey.Public())
				m.b.host.security.ServerKey = func() *[32]byte { return &key }
				var waiting [][]byte // copies, until the Challenge has passed
				challenges, cookie := 0, uint64(0)
				m.down.show = func(b []byte) {
					if typeOf(b) != proto.Challenge || challenges == tc.most {
						return
					}
					challenges++
					for range tc.copies {
						cookie++
						hi := helloIn(t, b)
						hi.Cookie, hi.ServerKey = cookie, tc.key[:]
						forgery := withCRC(slices.Concat(b[:proto.HeaderSize], helloOf(hi)))
						if tc.behind {
							waiting = append(waiting, forgery)
						} else {
							m.inject(m.b, m.a, forgery)
						}
					}
				}
				n := *m.noise
				n.terms.Server = [32]byte{}
				c := m.a.host.NewConn(plain)
				m.dialWith(m.a, m.b, c, nil, &learner{noise: &n})
				m.until("the request", 5*time.Second, func() bool {
					for _, forgery := range waiting {
						m.inject(m.b, m.a, forgery)
					}
					waiting = nil
					return len(m.b.arrived) > 0
				})
				if cookie == 0 {
					t.Error("nothing was forged")
				}
				m.welcome(c)
			}
		})
	}
}

// Attack 13: an attacker without a key sends the packets of a requester with a shared secret back to it, in the name of the
// server. The requester also listens, and has the secret; it must not connect to itself.
func TestAttack13ReflectedConnect(t *testing.T) {
	m := newMITM(t, true)
	m.b.down = true
	if err := m.a.host.Listen(service, m.a); err != nil {
		t.Fatal(err)
	}
	c := m.attempt([]byte("hello"))
	for i := 0; i < 100 && len(m.a.arrived) == 0; i++ {
		if i == len(m.sent) {
			m.run(helloRetryMax)
		}
		m.forge(m.b, m.a, m.sent[i])
	}
	if len(m.a.arrived) != 0 {
		t.Error("a request of the host itself arrived")
	}
	if m.a.eng.stats.Unopened == 0 {
		t.Error("no message 1 was read")
	}
	m.noResult(c, "reflection")
}

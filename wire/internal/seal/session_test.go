package seal

import (
	"bytes"
	"crypto/cipher"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// pair returns the sessions of the ends of a connection. The first one leads. Its sending secret is 00 01 … 1f.
func pair(tb testing.TB, l Limits) (a, b *Session) {
	tb.Helper()
	return pairWith(tb, l, nil)
}

func pairWith(tb testing.TB, l Limits, c func([]byte) (cipher.AEAD, error)) (a, b *Session) {
	tb.Helper()
	up, down := secrets()
	a = session(tb, &Config{Send: &up, Receive: &down, Leads: true, Limits: l, Cipher: c})
	up, down = secrets()
	b = session(tb, &Config{Send: &down, Receive: &up, Limits: l, Cipher: c})
	return a, b
}

func secrets() (up, down [SecretSize]byte) {
	for i := range up {
		up[i], down[i] = byte(i), byte(i+SecretSize)
	}
	return up, down
}

func session(tb testing.TB, c *Config) *Session {
	tb.Helper()
	s, err := New(c, 0)
	if err != nil {
		tb.Fatal(err)
	}
	if *c.Send != [SecretSize]byte{} || *c.Receive != [SecretSize]byte{} {
		tb.Error("New leaves the caller's secrets")
	}
	return s
}

// data returns a packet with a body of n bytes, and room for the tag.
func data(n int) []byte {
	p := make([]byte, proto.HeaderSize+n, proto.HeaderSize+n+Overhead)
	h := proto.Header{Type: proto.Data, Flags: proto.AckRequest | proto.Epoch, CID: 0x01020304, PSN: 5, Ack: 6, Tag: 7}
	h.Put(p)
	for i := range n {
		p[proto.HeaderSize+i] = byte(i + 1)
	}
	return p
}

func sealed(tb testing.TB, s *Session, n int, now clock.Time) []byte {
	tb.Helper()
	p, ok := s.Seal(data(n), now)
	if !ok {
		tb.Fatal("not sealed")
	}
	return p
}

// open opens a copy of a packet.
func open(s *Session, p []byte, now clock.Time) Result {
	_, result := s.Open(slices.Clone(p), now)
	return result
}

func expect(tb testing.TB, what string, got, want Result) {
	tb.Helper()
	if got != want {
		tb.Fatalf("%s: result %d, want %d", what, got, want)
	}
}

// TestHeader checks that Seal changes nothing of the header but nonce and KeyPhase, at the offsets of package proto.
func TestHeader(t *testing.T) {
	a, _ := pair(t, LimitsFor(1500))
	a.advance(0)
	a.send.counter, a.send.first = 0x1_9abcdef0, 0x1_9abcdef0
	var before, after proto.Header
	p := data(10)
	if !before.Parse(p) {
		t.Fatal("no header")
	}
	q, ok := a.Seal(p, 0)
	if !ok || &p[0] != &q[0] || len(q) != len(p)+Overhead || !after.Parse(q) {
		t.Fatalf("sealed %v: %x", ok, q)
	}
	before.Flags |= proto.KeyPhase
	before.Tag = 0x9abcdef0
	if after != before {
		t.Errorf("header %+v, want %+v", after, before)
	}
}

func TestRoundTrip(t *testing.T) {
	a, b := pair(t, LimitsFor(1500))
	for _, n := range []int{0, 1, 15, 16, 17, 1400, 8900, 65000} {
		for _, ends := range [][2]*Session{{a, b}, {b, a}} {
			p := sealed(t, ends[0], n, 0)
			if n > 15 && bytes.Contains(p, data(n)[proto.HeaderSize:]) {
				t.Errorf("%d bytes in clear", n)
			}
			body, result := ends[1].Open(p, 0)
			if result != Opened || !bytes.Equal(body, data(n)[proto.HeaderSize:]) {
				t.Errorf("%d bytes: result %d", n, result)
			}
		}
	}
}

// TestEveryBitCounts changes each bit of a packet. No change is accepted or changes the session, and the body of the
// packet is overwritten.
func TestEveryBitCounts(t *testing.T) {
	a, b := pair(t, LimitsFor(1500))
	expect(t, "first packet", open(b, sealed(t, a, 5, 0), 0), Opened)
	p := sealed(t, a, 40, 0)
	b.Seal(data(0), 0) // so that the other end may follow
	for i := range 8 * len(p) {
		bad := slices.Clone(p)
		bad[i/8] ^= 1 << (i % 8)
		body, result := b.Open(bad, 0)
		if result == Opened || body != nil {
			t.Fatalf("bit %d changed: opened", i)
		}
		if result == Forged && !bytes.Equal(bad[proto.HeaderSize:len(bad)-Overhead], make([]byte, 40)) {
			t.Fatalf("bit %d changed: the body is %x", i, bad)
		}
	}
	for _, n := range []int{0, 31, 32, 47} {
		expect(t, "cut", open(b, p[:n], 0), Short)
	}
	expect(t, "tag cut", open(b, p[:len(p)-1], 0), Forged)
	expect(t, "extended", open(b, append(slices.Clone(p), 0), 0), Forged)
	if _, received := b.Phases(); received != 0 || b.recv.next != 1 {
		t.Errorf("phase %d, next counter %d", received, b.recv.next)
	}
	expect(t, "unchanged", open(b, p, 0), Opened)
}

func TestReplay(t *testing.T) {
	a, b := pair(t, LimitsFor(1500))
	first := sealed(t, a, 1, 0)
	second := sealed(t, a, 1, 0)
	expect(t, "second", open(b, second, 0), Opened)
	expect(t, "second again", open(b, second, 0), Replayed)
	for range WindowSize - 1 {
		expect(t, "further", open(b, sealed(t, a, 1, 0), 0), Opened)
	}
	expect(t, "first after the window", open(b, first, 0), TooOld)
	expect(t, "second after more", open(b, second, 0), Replayed)
	expect(t, "the next one", open(b, sealed(t, a, 1, 0), 0), Opened)
	expect(t, "second after the window", open(b, second, 0), TooOld)
	if b.Failures() != 0 {
		t.Errorf("%d failures", b.Failures())
	}
}

// TestReflection sends packets back to their sender, and those of one connection to another one.
func TestReflection(t *testing.T) {
	a, b := pair(t, LimitsFor(1500))
	p := sealed(t, a, 9, 0)
	expect(t, "reflected", open(a, p, 0), Forged)
	up, down := secrets()
	up[0]++
	other := session(t, &Config{Send: &down, Receive: &up, Limits: LimitsFor(1500)})
	expect(t, "another connection", open(other, p, 0), Forged)
	expect(t, "the peer", open(b, p, 0), Opened)
}

// TestCounterBeyond32Bits passes the place where the counter in the header wraps, with a lost packet and late ones.
func TestCounterBeyond32Bits(t *testing.T) {
	a, b := pair(t, Limits{Packets: 1 << 62, Update: 1 << 62, Age: time.Hour, Failures: 10})
	a.send.counter, b.recv.next = 1<<32-3, 1<<32-3
	var all [][]byte
	for range 8 {
		all = append(all, sealed(t, a, 1, 0))
	}
	for _, i := range []int{1, 4, 2, 7, 0, 6, 5} {
		expect(t, "packet", open(b, all[i], 0), Opened)
		expect(t, "packet again", open(b, all[i], 0), Replayed)
	}
	if b.recv.next != 1<<32+5 {
		t.Errorf("next counter %x", b.recv.next)
	}
}

// TestLimits checks that a key seals exactly the packets of its limit.
func TestLimits(t *testing.T) {
	l := LimitsFor(1500)
	if l.Packets != 1<<28 || LimitsFor(2049).Packets != 1<<23 || LimitsFor(2048) != l || l.Update >= l.Packets ||
		l.Age != time.Hour || l.Failures != 1<<52 {
		t.Errorf("limits %+v", l)
	}
	a, b := pair(t, Limits{Packets: 10, Update: 5, Age: time.Hour, Failures: 3})
	for range 10 {
		sealed(t, b, 1, 0)
	}
	if _, ok := b.Seal(data(1), 0); ok {
		t.Error("the end that follows seals beyond the limit")
	}
	for range 10 {
		sealed(t, a, 1, 0) // no packet of the peer arrives, so no update is possible
	}
	if _, ok := a.Seal(data(1), 0); ok {
		t.Error("the end that leads seals beyond the limit")
	}
	bad := data(20)
	for range 3 {
		expect(t, "forged", open(a, bad, 0), Forged)
	}
	expect(t, "beyond the limit of failures", open(a, bad, 0), Exhausted)
}

func TestWipe(t *testing.T) {
	a, b := pair(t, LimitsFor(1500))
	p := sealed(t, a, 1, 0)
	b.Wipe()
	if b.send.secret != [SecretSize]byte{} || b.recv.secret != [SecretSize]byte{} || b.send.nonce != [nonceSize]byte{} {
		t.Error("secrets stay")
	}
	if _, result := b.Open(p, 0); result == Opened {
		t.Error("opens")
	}
	if _, ok := b.Seal(data(1), 0); ok {
		t.Error("seals")
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(data(0), true)
	f.Add(data(40), false)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, p []byte, leads bool) {
		a, b := pair(t, LimitsFor(1500))
		if leads {
			a, b = b, a
		}
		expect(t, "first", open(b, sealed(t, a, 3, 0), 0), Opened)
		sealed(t, b, 0, 0)
		if _, result := b.Open(p, 0); result == Opened {
			t.Fatalf("opened %x", p)
		}
		expect(t, "second", open(b, sealed(t, a, 3, 0), 0), Opened)
	})
}

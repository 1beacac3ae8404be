package dat

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

const (
	floodInterval = 100 * time.Microsecond // between two requests: more than half of a processor computes
	floodPhase    = time.Second / 4        // time with the flood, and time without it
	connectLen    = wireHeader + 52        // Connect without options
	cookieAt      = wireHeader + 40        // offset of the cookie
	noiseLen      = 2 + 1 + 4 + 80         // option with the head of message 1 of IK
	sealedLen     = 16                     // private-data field without private data
	sourcePort    = byte(1) << 7           // flag: the answer goes to the source port
)

// connectPacket returns a Connect. With a cookie, it has a message 1 that does not open.
func connectPacket(cid uint32, cookie []byte, keyID []byte) []byte {
	b := make([]byte, connectLen, 300)
	b[0], b[1] = 2<<4|3, sourcePort
	hello := b[wireHeader:]
	binary.BigEndian.PutUint32(hello, cid)
	binary.BigEndian.PutUint32(hello[4:], cid|1)
	binary.BigEndian.PutUint32(hello[8:], 1472)
	binary.BigEndian.PutUint16(hello[12:], 1024)
	binary.BigEndian.PutUint64(hello[24:], uint64(firstQual))
	if cookie != nil {
		copy(hello[40:], cookie)
		binary.BigEndian.PutUint16(hello[48:], noiseLen)
		binary.BigEndian.PutUint16(hello[50:], sealedLen)
		b = append(b, 0x81, noiseLen-2, 1)
		b = append(b, keyID...)
		for len(b) < connectLen+noiseLen+sealedLen {
			b = append(b, byte(rand.Uint32()))
		}
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// flooder sends requests from ever new loopback addresses, as an attacker with a network could.
type flooder struct {
	b       testing.TB
	server  *syscall.SockaddrInet4
	keyID   []byte
	waiting []int // sockets that wait for a Challenge
	next    time.Time
	buf     [2048]byte
}

// step sends a request if it is time for one, and answers Challenges.
func (f *flooder) step(now time.Time) {
	if now.Before(f.next) {
		return
	}
	f.next = now.Add(floodInterval)
	if len(f.waiting) > 8 {
		f.answer()
	}
	fd := must(syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0))(f.b)
	r := rand.Uint32()
	ok(f.b, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, byte(r>>16) | 1, byte(r >> 8), byte(r) | 1}}))
	ok(f.b, syscall.Sendto(fd, connectPacket(uint32(fd), nil, nil), 0, f.server))
	f.waiting = append(f.waiting, fd)
}

// answer answers the oldest Challenge, if it has come.
func (f *flooder) answer() {
	fd := f.waiting[0]
	f.waiting = f.waiting[1:]
	if n, _, err := syscall.Recvfrom(fd, f.buf[:], 0); err == nil && n > cookieAt+8 {
		ok(f.b, syscall.Sendto(fd, connectPacket(uint32(fd), f.buf[cookieAt:cookieAt+8], f.keyID), 0, f.server))
	}
	ok(f.b, syscall.Close(fd))
}

// stop closes the sockets.
func (f *flooder) stop() {
	for _, fd := range f.waiting {
		ok(f.b, syscall.Close(fd))
	}
	f.waiting = nil
}

// roundTrips returns the times of messages of 64 bytes to the peer and back in a phase. Between two of them, it calls
// f.step, unless f is nil.
func (p *point) roundTrips(times []time.Duration, f *flooder) []time.Duration {
	b := p.host.t
	var ev Event
	send := func(from, to *point) {
		ok(b, to.PostRecv(to.seg(0, 64), 1, 0))
		ok(b, from.PostSend(from.seg(64, 64), 2, CompletionSuppress))
		for to.recv.Dequeue(&ev) != nil {
			_ = from.request.Dequeue(&ev) // polls the other side; it has no event, because sends are suppressed
		}
	}
	for end := time.Now().Add(floodPhase); ; {
		began := time.Now()
		if began.After(end) {
			return times
		}
		send(p, p.peer)
		send(p.peer, p)
		now := time.Now()
		times = append(times, now.Sub(began))
		if f != nil {
			f.step(now)
		}
	}
}

// The round-trip time of an established connection in secure mode, without and with a flood of handshakes, each of an
// address of its own, which do not open. Phases with and without the flood take turns. One goroutine is both ends of the
// connection and the attacker. What the attacker spends is not counted.
func BenchmarkHandshakeFlood(b *testing.B) {
	u := newUDP(b).(udp)
	k := newKeyring(b)
	a := newHost(b, u, 0, k.options("alice", k.line("bob", "")))
	s := newHost(b, u, 1, k.options("bob", k.line("alice", "")))
	s.listen(testQual, 64)
	x, y := a.point(nil), s.point(nil)
	joinAs(x, y, PublicKey{}, "bob")
	public := k.publicOf("bob")
	id := sha256.Sum256(append([]byte("datxdp key ID"), public[:]...))
	f := &flooder{b: b, server: &syscall.SockaddrInet4{Port: int(u.port), Addr: u.addr(1).As4()}, keyID: id[:4]}
	defer f.stop()
	var quiet, busy []time.Duration
	denied := func() uint64 { return must(s.ia.Stats())(b).HandshakesDenied[DeniedKey] }
	first, phases := denied(), 0
	for b.Loop() {
		quiet = x.roundTrips(quiet, nil)
		busy = x.roundTrips(busy, f)
		time.Sleep(50 * time.Millisecond) // until no job waits
		phases++
	}
	at := func(t []time.Duration, q float64) float64 {
		slices.Sort(t)
		return us(t[int(q*float64(len(t)-1))])
	}
	b.ReportMetric(float64(denied()-first)/(float64(phases)*floodPhase.Seconds()), "handshakes/s")
	b.ReportMetric(at(quiet, 0.5), "p50-µs")
	b.ReportMetric(at(busy, 0.5), "p50-flood-µs")
	b.ReportMetric(at(quiet, 0.99), "p99-µs")
	b.ReportMetric(at(busy, 0.99), "p99-flood-µs")
	b.ReportMetric(at(busy, 0.99)/at(quiet, 0.99), "p99-ratio")
}

//go:build !race

package seal

import (
	"crypto/cipher"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// recorder counts the nonces with which the ciphers of a connection seal.
type recorder struct {
	keys   map[[keySize]byte]*nonces
	sealed int
	twice  int // nonces that were used twice with a key
}

// nonces are the nonces that a key has sealed with.
type nonces struct {
	made  int // ciphers with this key
	salt  [saltSize]byte
	first uint64
	seen  []uint64 // one bit for each counter from first on
}

type recorded struct {
	cipher.AEAD
	*recorder
	*nonces
}

func (r *recorder) newCipher(b []byte) (cipher.AEAD, error) {
	n := r.keys[[keySize]byte(b)]
	if n == nil {
		n = &nonces{}
		r.keys[[keySize]byte(b)] = n
	}
	n.made++
	aead, err := newGCM(b)
	return recorded{aead, r, n}, err
}

func (r recorded) Seal(dst, nonce, plain, header []byte) []byte {
	r.sealed++
	n, counter := r.nonces, binary.BigEndian.Uint64(nonce[saltSize:])
	if n.seen == nil {
		n.first, n.salt = counter, [saltSize]byte(nonce)
	}
	i := counter - n.first
	for uint64(len(n.seen)) <= i/64 {
		n.seen = append(n.seen, 0)
	}
	if n.seen[i/64]&(1<<(i%64)) != 0 || n.salt != [saltSize]byte(nonce) {
		r.twice++
	}
	n.seen[i/64] |= 1 << (i % 64)
	return r.AEAD.Seal(dst, nonce, plain, header)
}

// TestNonces counts the nonces of ten million packets in both directions, with loss and key updates. The counters pass
// the place where their lower half wraps.
func TestNonces(t *testing.T) {
	total := 10_000_000
	if testing.Short() {
		total = 200_000
	}
	r := &recorder{keys: map[[keySize]byte]*nonces{}}
	a, b := pairWith(t, Limits{Packets: 1 << 15, Update: 1 << 14, Age: time.Hour, Failures: 1}, r.newCipher)
	a.send.counter, a.send.first = 1<<32-1<<13, 1<<32-1<<13
	b.recv.next, b.recv.first = a.send.counter, a.send.first
	rng := rand.New(rand.NewPCG(1, 3))
	p := data(16)
	for i := range total {
		from, to := a, b
		if rng.IntN(2) == 0 {
			from, to = b, a
		}
		q, ok := from.Seal(p, 0)
		if !ok {
			t.Fatalf("packet %d was not sealed", i)
		}
		if rng.IntN(4) > 0 {
			if _, result := to.Open(q, 0); result != Opened {
				t.Fatalf("packet %d: result %d", i, result)
			}
		}
		if i%64 == 0 {
			a.Expire(0, 0)
		}
	}
	up, _ := a.Phases()
	if r.twice > 0 || r.sealed != total || int(up) < total/2>>15 || a.send.counter < 1<<32 {
		t.Errorf("%d of %d nonces were used twice, %d updates, counter %x", r.twice, r.sealed, up, a.send.counter)
	}
	for k, n := range r.keys {
		if n.made != 2 {
			t.Fatalf("key %x was made %d times", k, n.made)
		}
	}
	if len(r.keys) != 2*int(up)+2 {
		t.Errorf("%d keys in %d phases", len(r.keys), up)
	}
}

func TestNoAllocations(t *testing.T) {
	a, b := pair(t, LimitsFor(1500))
	p, forged := data(1400), data(1400)
	forged = forged[:cap(forged)]
	replayed := sealed(t, a, 8, 0)
	expect(t, "packet", open(b, replayed, 0), Opened)
	n := testing.AllocsPerRun(100, func() {
		q, _ := a.Seal(p, 0)
		if _, result := b.Open(q, 0); result != Opened {
			t.Fatal("not opened")
		}
		binary.BigEndian.PutUint32(forged[proto.OffCounter:], uint32(a.send.counter))
		if _, result := b.Open(forged, 0); result != Forged {
			t.Fatal("not forged")
		}
		if _, result := b.Open(replayed, 0); result != Replayed {
			t.Fatal("not replayed")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestMemory measures a session that is idle, with the receiving key of the phase before.
func TestMemory(t *testing.T) {
	const count, most = 1000, 3 << 10
	all := make([]*Session, count)
	measure := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := measure()
	for i := range all {
		s, _ := pair(t, LimitsFor(1500))
		s.recv.before = s.recv.key
		s.recv.key, _ = s.recv.derive()
		all[i] = s
	}
	if each := (measure() - before) / count; each > most {
		t.Errorf("a session takes %d bytes, want %d at most", each, most)
	} else {
		t.Logf("a session takes %d bytes", each)
	}
	runtime.KeepAlive(all)
}

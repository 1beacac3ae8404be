//go:build !race

package wire

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// nonceCount counts the packets that are sealed. It checks that one end only seals with a key, and that the counters in
// the nonces of a key grow. Then no pair of key and nonce is used twice.
type nonceCount struct {
	t       testing.TB
	packets uint64
	most    uint64 // largest number of packets with one key
	sealers map[[16]byte]*countedCipher
}

// newCipher makes AES-128-GCM with the checks.
func (n *nonceCount) newCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &countedCipher{AEAD: aead, n: n, key: [16]byte(key)}, err
}

type countedCipher struct {
	cipher.AEAD
	n       *nonceCount
	key     [16]byte
	salt    [4]byte
	next    uint64 // lowest counter that is not used
	packets uint64
}

// Seal implements cipher.AEAD.
func (c *countedCipher) Seal(dst, nonce, plaintext, header []byte) []byte {
	n, counter := c.n, binary.BigEndian.Uint64(nonce[4:])
	if c.packets == 0 {
		if n.sealers[c.key] != nil {
			n.t.Errorf("two ends seal with one key")
		}
		n.sealers[c.key], c.salt = c, [4]byte(nonce)
	}
	if counter < c.next || [4]byte(nonce) != c.salt {
		n.t.Errorf("nonce %x after counter %d", nonce, c.next)
	}
	c.next = counter + 1
	c.packets++
	n.packets++
	n.most = max(n.most, c.packets)
	return c.AEAD.Seal(dst, nonce, plaintext, header)
}

// startAt gives the ends of an idle connection new keys whose counters begin at first.
func (w *world) startAt(first uint64, ca, cb *Conn) {
	w.t.Helper()
	w.run(time.Second) // until no packet is in the network
	for _, c := range []*Conn{ca, cb} {
		secrets := [2][32]byte{{1}, {2}}
		cfg := seal.Config{Send: &secrets[0], Receive: &secrets[1], Leads: c == ca, Limits: *w.keys, First: first, Cipher: c.host.newCipher}
		if c == cb {
			cfg.Send, cfg.Receive = cfg.Receive, cfg.Send
		}
		var err error
		if c.keys.Session, err = seal.New(&cfg, c.eng.now); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Attack 11: in ten million sealed packets over a network that loses, reorders, duplicates and changes packets, no pair of
// key and nonce comes twice, although contents are sent again and keys change. The counters pass 2^32. No key seals more
// packets than its limit.
func TestAttack11TenMillionNonces(t *testing.T) {
	total := uint64(10_000_000)
	if testing.Short() {
		total = 200_000
	}
	limits := &seal.Limits{Packets: 1 << 14, Update: 1<<14 - 1<<11, Age: time.Hour, Failures: 1 << 40}
	w := newSecureWorld(t, simlink.Config{Seed: 12, Delay: 5 * time.Microsecond, Loss: 0.01, Reorder: 0.02, Duplicate: 0.02, Corrupt: 0.01},
		Limits{}, limits, 2)
	count := &nonceCount{t: t, sealers: map[[16]byte]*countedCipher{}}
	for _, n := range w.nodes {
		n.host.newCipher = count.newCipher
	}
	ca, cb := w.pair(plain)
	a, b := w.nodes[0], w.nodes[1]
	w.startAt(1<<32-total/8, ca, cb)
	const size = 400
	src, dst := a.memory(size), b.memory(size)
	for count.packets < total {
		for a.post(ca, ca.PostWrite(src.seg(0, size), 1, dst.at(0), 0)) {
		}
		for b.post(cb, cb.PostWrite(dst.seg(0, size), 1, src.at(0), 0)) {
		}
		w.until("a write", 20*time.Second, func() bool { return a.request.Len() > 0 && b.request.Len() > 0 })
		w.drain(a.request)
		w.drain(b.request)
	}
	phases, _ := ca.keys.Phases()
	retransmits := a.eng.Stats().Retransmits + b.eng.Stats().Retransmits
	t.Logf("%d packets, %d retransmissions, %d key updates, at most %d packets with a key", count.packets, retransmits, phases, count.most)
	if most := 2*uint64(phases) + 4; uint64(len(count.sealers)) > most || uint64(phases) < total>>16 || retransmits < total/1000 || count.most > limits.Packets {
		t.Errorf("%d keys of at most %d have sealed", len(count.sealers), most)
	}
	if ca.keys.Sealed() < 1<<32 || cb.keys.Sealed() < 1<<32 {
		t.Errorf("the counters ended at %#x and %#x", ca.keys.Sealed(), cb.keys.Sealed())
	}
	w.over(ca, cb)
}

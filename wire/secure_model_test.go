package wire

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// cipherModel knows each plaintext that a receiver may accept: those that an end of a connection has sealed. It checks
// that no nonce is used twice with a key, and that only sealed plaintexts are opened, each of them once.
type cipherModel struct {
	t       testing.TB
	sealed  map[[32]byte][32]byte // hash of plaintext and header, by hash of key and nonce
	numOpen int
	numKeys int                            // ciphers that were made
	show    func(header, plaintext []byte) // called for each packet that is sealed; nil: nobody
}

func newCipherModel(t testing.TB) *cipherModel {
	return &cipherModel{t: t, sealed: make(map[[32]byte][32]byte)}
}

// newCipher makes AES-128-GCM with the checks of the model.
func (m *cipherModel) newCipher(key []byte) (cipher.AEAD, error) {
	m.numKeys++
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return checkedCipher{aead, m, [16]byte(key)}, err
}

type checkedCipher struct {
	cipher.AEAD
	m   *cipherModel
	key [16]byte
}

func hashOf(parts ...[]byte) [32]byte { return sha256.Sum256(slices.Concat(parts...)) }

// Seal implements cipher.AEAD.
func (c checkedCipher) Seal(dst, nonce, plaintext, header []byte) []byte {
	at, what := hashOf(c.key[:], nonce), hashOf(header, plaintext)
	if _, used := c.m.sealed[at]; used {
		c.m.t.Errorf("nonce %x is used twice", nonce)
	}
	c.m.sealed[at] = what
	if c.m.show != nil {
		c.m.show(header, plaintext)
	}
	return c.AEAD.Seal(dst, nonce, plaintext, header)
}

// Open implements cipher.AEAD.
func (c checkedCipher) Open(dst, nonce, ciphertext, header []byte) ([]byte, error) {
	out, err := c.AEAD.Open(dst, nonce, ciphertext, header)
	if err != nil {
		return out, err
	}
	at := hashOf(c.key[:], nonce)
	switch what, ok := c.m.sealed[at]; {
	case !ok || what == [32]byte{}:
		c.m.t.Errorf("nonce %x: a plaintext was accepted that was not sealed, or was accepted before", nonce)
	case what != hashOf(header, out[len(dst):]):
		c.m.t.Errorf("nonce %x: another plaintext was accepted than was sealed", nonce)
	}
	c.m.sealed[at] = [32]byte{}
	c.m.numOpen++
	return out, err
}

// handshakeModel knows the messages of handshakes that a receiver may accept, with their payloads. It checks that each
// message is accepted once at most, and that message 1 is accepted with the Connect for which it was made.
type handshakeModel struct {
	t      testing.TB
	made   map[[32]byte][32]byte // hash of prologue and payload, by hash of the message
	opened int
}

func newHandshakeModel(t testing.TB) *handshakeModel {
	return &handshakeModel{t: t, made: make(map[[32]byte][32]byte)}
}

// wrote notes a message. The prologue is nil for a message 2. m may be nil.
func (m *handshakeModel) wrote(prologue, message, payload []byte) {
	if m == nil {
		return
	}
	m.made[hashOf(message)] = hashOf(prologue, payload)
}

// read checks a message that was accepted. m may be nil.
func (m *handshakeModel) read(prologue, message, payload []byte) {
	if m == nil {
		return
	}
	at := hashOf(message)
	if what, ok := m.made[at]; !ok || what != hashOf(prologue, payload) {
		m.t.Errorf("message of %d bytes: accepted twice, or with another payload or prologue", len(message))
	}
	m.made[at] = [32]byte{}
	m.opened++
}

// lateJobs is a Runner whose jobs run later, in any order.
type lateJobs struct {
	r    *rand.Rand
	jobs []*Job
}

func newLateJobs(seed uint64) *lateJobs { return &lateJobs{r: randSource(seed + 66)} }

// Submit implements Runner. Sometimes it has no room.
func (l *lateJobs) Submit(j *Job) bool {
	if len(l.jobs) > 0 && l.r.IntN(4) == 0 && j.From.IsValid() {
		return false
	}
	l.jobs = append(l.jobs, j)
	return true
}

// run runs a job, or none. It reports whether it has run one. l may be nil.
func (l *lateJobs) run() bool {
	if !l.waiting() || l.r.IntN(4) != 0 {
		return false
	}
	i := l.r.IntN(len(l.jobs))
	j := l.jobs[i]
	l.jobs = slices.Delete(l.jobs, i, i+1)
	j.Do()
	return true
}

// waiting reports whether a job waits. l may be nil.
func (l *lateJobs) waiting() bool { return l != nil && len(l.jobs) > 0 }

// heldJobs is a Runner whose jobs run when the test says so.
type heldJobs struct{ jobs []*Job }

// Submit implements Runner.
func (h *heldJobs) Submit(j *Job) bool {
	h.jobs = append(h.jobs, j)
	return true
}

// run runs all jobs.
func (h *heldJobs) run() {
	for _, j := range h.jobs {
		j.Do()
	}
	h.jobs = nil
}

// goJobs is a Runner with a goroutine for each job.
type goJobs struct{ sync.WaitGroup }

// Submit implements Runner.
func (g *goJobs) Submit(j *Job) bool {
	g.Go(j.Do)
	return true
}

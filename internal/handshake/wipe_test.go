package handshake

import (
	"crypto/rand"
	"io"
	"testing"

	"github.com/flynn/noise"
)

// spy keeps the buffers into which it reads.
type spy struct {
	io.Reader
	buffers [][]byte
}

func (s *spy) Read(b []byte) (int, error) {
	s.buffers = append(s.buffers, b)
	return s.Reader.Read(b)
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return len(b) > 0
}

// TestWipe checks that the copies of secrets in this package are overwritten.
func TestWipe(t *testing.T) {
	forms(t, func(t *testing.T, f Form) {
		a, b := ends(t, f)
		atRequester, atServer := &spy{Reader: rand.Reader}, &spy{Reader: rand.Reader}
		requester, m1, err := Request(&a, atRequester, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		server := respond(t, &b, m1)
		var s Secrets
		shared := server.keys.shared[:cap(server.keys.shared)]
		if f == IK && (len(shared) < 2 || !zero(shared[0]) || !zero(shared[1])) {
			t.Errorf("shared secrets of message 1: %x", shared)
		}
		m2, err := server.Reply(atServer, nil, nil, &s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := requester.Finish(nil, m2, &s); err != nil {
			t.Fatal(err)
		}
		for _, buffer := range append(atRequester.buffers, atServer.buffers...) {
			if !zero(buffer) {
				t.Errorf("bytes of an ephemeral key stay: %x", buffer)
			}
		}
		if requester.keys.ephemeral != nil || server.keys.ephemeral != nil || requester.noise != nil || server.noise != nil {
			t.Error("the state of a finished handshake stays")
		}
		if s.Wipe(); !zero(s.Send[:]) || !zero(s.Receive[:]) {
			t.Error("the secrets stay")
		}
	})
	shared := SharedKey{1}
	if shared.Wipe(); !zero(shared[:]) {
		t.Error("the shared key stays")
	}
}

// TestTake checks that flynn/noise overwrites its copy of a secret.
func TestTake(t *testing.T) {
	c := noise.UnsafeNewCipherState(noise.NewCipherSuite(noise.DH25519, noise.CipherAESGCM, noise.HashSHA256), [32]byte{1}, 0)
	if key := take(c); key != [32]byte{1} || c.UnsafeKey() == key {
		t.Errorf("took %x, left %x", key, c.UnsafeKey())
	}
}

// TestForget checks that a forgotten handshake cannot go on.
func TestForget(t *testing.T) {
	a, b := ends(t, IK)
	requester, m1 := request(t, &a, "")
	server := respond(t, &b, m1)
	requester.Forget()
	server.Forget()
	var s Secrets
	if _, err := requester.Finish(nil, make([]byte, 48), &s); err != ErrState {
		t.Errorf("Finish: %v", err)
	}
	if _, err := server.Reply(rand.Reader, nil, nil, &s); err != ErrState {
		t.Errorf("Reply: %v", err)
	}
}

// weakExchange makes ephemeral keys of low order.
type weakExchange struct{ *exchange }

func (weakExchange) GenerateKeypair(io.Reader) (noise.DHKey, error) {
	return noise.DHKey{Private: ephemeralKey, Public: make([]byte, KeySize)}, nil
}

func (weakExchange) DH(_, _ []byte) ([]byte, error) { return make([]byte, KeySize), nil }

// reply answers message 1 as a server with a weak key does.
func (x weakExchange) reply(t *testing.T, terms *Terms, m1 []byte) []byte {
	t.Helper()
	h, err := noise.NewHandshakeState(noise.Config{Pattern: noise.HandshakeNN, Prologue: terms.Prologue,
		PresharedKey: terms.Shared[:], CipherSuite: noise.NewCipherSuite(x, noise.CipherAESGCM, noise.HashSHA256)})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err = h.ReadMessage(nil, m1); err != nil {
		t.Fatal(err)
	}
	m2, _, _, err := h.WriteMessage(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m2
}

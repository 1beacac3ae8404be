package handshake

import (
	"bytes"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"testing"
)

// FuzzMessages gives both ends arbitrary messages. No message but the own ones authenticates, and the right message 2
// works after any wrong one.
func FuzzMessages(f *testing.F) {
	var requesters, servers [3]Terms
	var real [3][]byte
	random := mathrand.NewChaCha8([32]byte{1}) // the processes of a fuzz run have the same keys
	for _, form := range []Form{IK, NNpsk0} {
		a, b := ends(f, form)
		if form == IK {
			a.Own, b.Own = private(f, bytes.Repeat([]byte{1}, KeySize)), private(f, bytes.Repeat([]byte{2}, KeySize))
			a.Server = b.Own.Public()
		}
		_, m1, err := Request(&a, random, nil, []byte("payload"))
		if err != nil {
			f.Fatal(err)
		}
		m2, _ := reply(f, respond(f, &b, m1), "payload")
		requesters[form], servers[form], real[form] = a, b, m1
		f.Add(byte(form), m1)
		f.Add(byte(form), m2)
		f.Add(byte(form), m1[:len(m1)-1])
	}
	f.Add(byte(IK), make([]byte, 96))
	f.Add(byte(NNpsk0), make([]byte, 48))
	f.Fuzz(func(t *testing.T, which byte, m []byte) {
		form := NNpsk0
		if which&1 == 1 {
			form = IK
		}
		if _, _, err := Respond(&servers[form], nil, m); err == nil && string(m) != string(real[form]) {
			t.Fatalf("message 1 %x authenticates", m)
		}
		r, m1 := request(t, &requesters[form], "")
		var s Secrets
		if _, err := r.Finish(nil, m, &s); !errors.Is(err, ErrAuth) && !errors.Is(err, ErrLength) {
			t.Fatalf("message 2 %x: %v", m, err)
		}
		server, _, err := Respond(&servers[form], nil, m1)
		if err != nil {
			t.Fatal(err)
		}
		m2, err := server.Reply(rand.Reader, nil, nil, &s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Finish(nil, m2, &s); err != nil {
			t.Fatalf("the right message 2 after %x: %v", m, err)
		}
	})
}

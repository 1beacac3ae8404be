package handshake

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
)

// private returns a private key of given bytes.
func private(tb testing.TB, b []byte) *PrivateKey {
	tb.Helper()
	k, err := NewPrivateKey(b)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func key(tb testing.TB) *PrivateKey {
	tb.Helper()
	k, err := GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// ends returns the terms of two ends that know each other.
func ends(tb testing.TB, f Form) (requester, server Terms) {
	tb.Helper()
	prologue := []byte("datxdp secure v2, a Connect")
	if f == NNpsk0 {
		shared := &SharedKey{1, 2, 3}
		return Terms{Shared: shared, Prologue: prologue}, Terms{Shared: shared, Prologue: prologue}
	}
	server = Terms{Own: key(tb), Prologue: prologue}
	return Terms{Own: key(tb), Server: server.Own.Public(), Prologue: prologue}, server
}

// forms runs a test for every pattern.
func forms(t *testing.T, test func(*testing.T, Form)) {
	t.Run("IK", func(t *testing.T) { test(t, IK) })
	t.Run("NNpsk0", func(t *testing.T) { test(t, NNpsk0) })
}

func request(tb testing.TB, t *Terms, payload string) (*Requester, []byte) {
	tb.Helper()
	r, m, err := Request(t, rand.Reader, nil, []byte(payload))
	if err != nil {
		tb.Fatal(err)
	}
	return r, m
}

func respond(tb testing.TB, t *Terms, m1 []byte) *Responder {
	tb.Helper()
	r, _, err := Respond(t, nil, m1)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func reply(tb testing.TB, r *Responder, payload string) ([]byte, Secrets) {
	tb.Helper()
	var s Secrets
	m, err := r.Reply(rand.Reader, nil, []byte(payload), &s)
	if err != nil {
		tb.Fatal(err)
	}
	return m, s
}

func TestBothEndsAgree(t *testing.T) {
	forms(t, func(t *testing.T, f Form) {
		a, b := ends(t, f)
		requester, m1 := request(t, &a, "private data")
		if got, want := len(m1), f.RequestHead()+len("private data")+Overhead; got != want {
			t.Errorf("message 1 has %d bytes, want %d", got, want)
		}
		server, payload, err := Respond(&b, []byte("before "), m1)
		if err != nil || string(payload) != "before private data" {
			t.Fatalf("Respond: %q, %v", payload, err)
		}
		if f == IK && server.Peer() != a.Own.Public() {
			t.Error("the server knows another requester")
		}
		m2, atServer := reply(t, server, "accept")
		if got, want := len(m2), f.ReplyHead()+len("accept")+Overhead; got != want {
			t.Errorf("message 2 has %d bytes, want %d", got, want)
		}
		var s Secrets
		if payload, err = requester.Finish([]byte("before "), m2, &s); err != nil || string(payload) != "before accept" {
			t.Fatalf("Finish: %q, %v", payload, err)
		}
		if s.Send != atServer.Receive || s.Receive != atServer.Send || s.Send == s.Receive {
			t.Errorf("secrets %+v and %+v", s, atServer)
		}
	})
}

// TestSizes compares the sizes in decision 0016 with those of messages.
func TestSizes(t *testing.T) {
	if IK.RequestHead() != 80 || IK.ReplyHead() != 32 || NNpsk0.RequestHead() != 32 || NNpsk0.ReplyHead() != 32 {
		t.Error("a head has another size")
	}
	for _, f := range []Form{0, 3, 255} {
		if f.RequestHead() != 0 || f.ReplyHead() != 0 {
			t.Errorf("form %d has a head", f)
		}
	}
}

// TestTermsDiffer checks that no handshake succeeds between ends with different keys or prologues.
func TestTermsDiffer(t *testing.T) {
	cases := []struct {
		name   string
		form   Form
		change func(requester *Terms)
	}{
		{"prologue", IK, func(a *Terms) { a.Prologue = []byte("another Connect") }},
		{"no prologue", IK, func(a *Terms) { a.Prologue = nil }},
		{"prologue cut", IK, func(a *Terms) { a.Prologue = a.Prologue[:len(a.Prologue)-1] }},
		{"server key", IK, func(a *Terms) { a.Server = key(t).Public() }},
		{"own key as the server's", IK, func(a *Terms) { a.Server = a.Own.Public() }},
		{"prologue", NNpsk0, func(a *Terms) { a.Prologue = []byte("another Connect") }},
		{"shared key", NNpsk0, func(a *Terms) { a.Shared = &SharedKey{1, 2, 4} }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, b := ends(t, c.form)
			c.change(&a)
			_, m1 := request(t, &a, "x")
			if _, _, err := Respond(&b, nil, m1); !errors.Is(err, ErrAuth) {
				t.Errorf("Respond: %v, want %v", err, ErrAuth)
			}
		})
	}
}

// TestEveryByteCounts changes the lowest and the highest bit of each byte of both messages. X25519 ignores the highest
// bit of a key.
func TestEveryByteCounts(t *testing.T) {
	forms(t, func(t *testing.T, f Form) {
		a, b := ends(t, f)
		requester, m1 := request(t, &a, "one")
		server := respond(t, &b, m1)
		m2, _ := reply(t, server, "two")
		for i := range 2 * len(m1) {
			bad := slices.Clone(m1)
			bad[i/2] ^= [2]byte{1, 0x80}[i%2]
			if _, _, err := Respond(&b, nil, bad); !errors.Is(err, ErrAuth) {
				t.Fatalf("byte %d of message 1: %v", i/2, err)
			}
		}
		var s Secrets
		for i := range 2 * len(m2) {
			bad := slices.Clone(m2)
			bad[i/2] ^= [2]byte{1, 0x80}[i%2]
			if _, err := requester.Finish(nil, bad, &s); !errors.Is(err, ErrAuth) || s != (Secrets{}) {
				t.Fatalf("byte %d of message 2: %v, secrets %+v", i/2, err, s)
			}
		}
		if _, err := requester.Finish(nil, m2, &s); err != nil {
			t.Fatalf("the right message 2 after the wrong ones: %v", err)
		}
	})
}

func TestWrongLengths(t *testing.T) {
	forms(t, func(t *testing.T, f Form) {
		a, b := ends(t, f)
		requester, m1 := request(t, &a, "one")
		m2, _ := reply(t, respond(t, &b, m1), "two")
		long := make([]byte, 1<<16)
		for _, n := range []int{0, 1, 31, f.RequestHead(), f.RequestHead() + Overhead - 1, f.RequestHead() + Overhead + MaxPayload + 1, 1 << 16} {
			if _, _, err := Respond(&b, nil, append(slices.Clone(m1), long...)[:n]); !errors.Is(err, ErrLength) {
				t.Errorf("message 1 of %d bytes: %v", n, err)
			}
		}
		var s Secrets
		for _, n := range []int{0, 31, 32, 32 + Overhead - 1, 32 + Overhead + MaxPayload + 1} {
			if _, err := requester.Finish(nil, append(slices.Clone(m2), long...)[:n], &s); !errors.Is(err, ErrLength) {
				t.Errorf("message 2 of %d bytes: %v", n, err)
			}
		}
		if _, _, err := Respond(&b, nil, m1[:len(m1)-1]); !errors.Is(err, ErrAuth) {
			t.Errorf("message 1 without its last byte: %v", err)
		}
		if _, _, err := Respond(&b, nil, append(slices.Clone(m1), 0)); !errors.Is(err, ErrAuth) {
			t.Errorf("message 1 with a byte more: %v", err)
		}
		if _, _, err := Request(&a, rand.Reader, nil, long[:MaxPayload+1]); !errors.Is(err, ErrLength) {
			t.Errorf("a payload that is too long: %v", err)
		}
		if _, err := requester.Finish(nil, m2, &s); err != nil {
			t.Errorf("the right message 2: %v", err)
		}
	})
}

// TestOtherForm sends message 1 of each pattern to a server of the other one.
func TestOtherForm(t *testing.T) {
	forms(t, func(t *testing.T, f Form) {
		a, _ := ends(t, f)
		_, other := ends(t, IK+NNpsk0-f)
		_, m1 := request(t, &a, string(make([]byte, 64)))
		if _, _, err := Respond(&other, nil, m1); !errors.Is(err, ErrAuth) {
			t.Errorf("%v", err)
		}
	})
}

// TestReplay lets a server answer one message 1 twice: the secrets have nothing in common, and each end accepts only
// the answer of its own handshake.
func TestReplay(t *testing.T) {
	forms(t, func(t *testing.T, f Form) {
		a, b := ends(t, f)
		requester, m1 := request(t, &a, "")
		m2, first := reply(t, respond(t, &b, m1), "")
		_, second := reply(t, respond(t, &b, m1), "")
		if first.Send == second.Send || first.Receive == second.Receive || first.Send == second.Receive {
			t.Fatal("two answers to one message have the same secrets")
		}
		other, _ := request(t, &a, "")
		var s Secrets
		if _, err := other.Finish(nil, m2, &s); !errors.Is(err, ErrAuth) {
			t.Errorf("an answer to another message 1: %v", err)
		}
		if _, err := requester.Finish(nil, m2, &s); err != nil {
			t.Fatal(err)
		}
		if _, err := requester.Finish(nil, m2, &s); !errors.Is(err, ErrState) {
			t.Errorf("the same answer again: %v", err)
		}
	})
}

// TestReflection sends message 1 back to the requester as message 2, and to the requester as a server.
func TestReflection(t *testing.T) {
	forms(t, func(t *testing.T, f Form) {
		a, _ := ends(t, f)
		requester, m1 := request(t, &a, "")
		var s Secrets
		if _, err := requester.Finish(nil, m1, &s); !errors.Is(err, ErrAuth) {
			t.Errorf("as message 2: %v", err)
		}
		if f == IK {
			if _, _, err := Respond(&a, nil, m1); !errors.Is(err, ErrAuth) {
				t.Errorf("as message 1: %v", err)
			}
		}
	})
}

// lowOrder are X25519 public keys for which the shared secret is 0.
var lowOrder = [][]byte{
	make([]byte, 32),
	append([]byte{1}, make([]byte, 31)...),
	{0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
		0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00},
	{0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
}

// TestLowOrder sends keys whose shared secret is 0. They never authenticate, and do not spoil the handshake.
func TestLowOrder(t *testing.T) {
	forms(t, func(t *testing.T, f Form) {
		a, b := ends(t, f)
		requester, m1 := request(t, &a, "")
		m2, _ := reply(t, respond(t, &b, m1), "")
		var s Secrets
		for _, point := range lowOrder {
			if _, _, err := Respond(&b, nil, append(slices.Clone(point), m1[KeySize:]...)); !errors.Is(err, ErrAuth) {
				t.Errorf("message 1 with %x: %v", point, err)
			}
			if _, err := requester.Finish(nil, append(slices.Clone(point), m2[KeySize:]...), &s); !errors.Is(err, ErrAuth) {
				t.Errorf("message 2 with %x: %v", point, err)
			}
		}
		if _, err := requester.Finish(nil, m2, &s); err != nil {
			t.Errorf("the right message 2 after them: %v", err)
		}
	})
	for _, point := range lowOrder {
		a, _ := ends(t, IK)
		a.Server = PublicKey(point)
		if _, _, err := Request(&a, rand.Reader, nil, nil); !errors.Is(err, ErrAuth) {
			t.Errorf("a request to the server with key %x: %v", point, err)
		}
	}
}

// TestWeakInsider lets an end that has the shared key send an ephemeral key of low order. The handshake must fail, since
// its secrets would not depend on this end.
func TestWeakInsider(t *testing.T) {
	a, b := ends(t, NNpsk0)
	requester, m1 := request(t, &a, "")
	m2 := weakExchange{&exchange{}}.reply(t, &b, m1)
	var s Secrets
	if _, err := requester.Finish(nil, m2, &s); !errors.Is(err, ErrAuth) || s != (Secrets{}) {
		t.Errorf("%v, secrets %+v", err, s)
	}
}

func TestNoRandomness(t *testing.T) {
	forms(t, func(t *testing.T, f Form) {
		a, b := ends(t, f)
		if _, _, err := Request(&a, bytes.NewReader(make([]byte, 31)), nil, nil); !errors.Is(err, ErrRandom) {
			t.Errorf("Request: %v", err)
		}
		_, m1 := request(t, &a, "")
		var s Secrets
		if _, err := respond(t, &b, m1).Reply(bytes.NewReader(nil), nil, nil, &s); !errors.Is(err, ErrRandom) {
			t.Errorf("Reply: %v", err)
		}
	})
	if _, err := GenerateKey(bytes.NewReader(nil)); !errors.Is(err, ErrRandom) {
		t.Errorf("GenerateKey: %v", err)
	}
	if _, err := NewPrivateKey(make([]byte, 31)); !errors.Is(err, ErrLength) {
		t.Errorf("NewPrivateKey: %v", err)
	}
	if _, _, err := Request(&Terms{}, rand.Reader, nil, nil); !errors.Is(err, ErrLength) {
		t.Errorf("Request without a key: %v", err)
	}
}

func TestKeyIDs(t *testing.T) {
	a, b := key(t), key(t)
	shared := SharedKey(a.Public())
	if a.Public().ID() == b.Public().ID() || a.Public().ID() == shared.ID() {
		t.Error("names do not tell keys apart")
	}
}

package handshake

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// vector is a handshake with known keys. The vectors are those of cacophony and of flynn/noise. The first two messages
// are the handshake. The others are what the requester and the server then send, with nonce 0.
type vector struct {
	Source, Protocol, Prologue          string
	Requester, Server, Shared           string
	RequesterEphemeral, ServerEphemeral string
	Messages                            [][2]string // payload, message
}

func vectors(tb testing.TB) (all []vector) {
	tb.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		tb.Fatal(err)
	}
	return all
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// terms returns the terms of both ends.
func (v *vector) terms(t *testing.T) (requester, server *Terms) {
	t.Helper()
	requester, server = &Terms{Prologue: unhex(t, v.Prologue)}, &Terms{Prologue: unhex(t, v.Prologue)}
	if v.Shared != "" {
		shared := SharedKey(unhex(t, v.Shared))
		requester.Shared, server.Shared = &shared, &shared
		return requester, server
	}
	requester.Own, server.Own = private(t, unhex(t, v.Requester)), private(t, unhex(t, v.Server))
	requester.Server = server.Own.Public()
	return requester, server
}

func TestKnownAnswers(t *testing.T) {
	all := vectors(t)
	if len(all) != 4 {
		t.Fatalf("%d vectors, want 4", len(all))
	}
	for _, v := range all {
		t.Run(v.Source+"/"+v.Protocol, func(t *testing.T) { v.check(t) })
	}
}

func (v *vector) check(t *testing.T) {
	requesterTerms, serverTerms := v.terms(t)
	requester, m1, err := Request(requesterTerms, bytes.NewReader(unhex(t, v.RequesterEphemeral)), nil, unhex(t, v.Messages[0][0]))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "message 1", m1, unhex(t, v.Messages[0][1]))
	server, payload, err := Respond(serverTerms, nil, m1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "payload 1", payload, unhex(t, v.Messages[0][0]))
	var atServer, atRequester Secrets
	m2, err := server.Reply(bytes.NewReader(unhex(t, v.ServerEphemeral)), nil, unhex(t, v.Messages[1][0]), &atServer)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "message 2", m2, unhex(t, v.Messages[1][1]))
	if payload, err = requester.Finish(nil, m2, &atRequester); err != nil {
		t.Fatal(err)
	}
	same(t, "payload 2", payload, unhex(t, v.Messages[1][0]))
	same(t, "secret of the requester", atServer.Receive[:], atRequester.Send[:])
	same(t, "secret of the server", atServer.Send[:], atRequester.Receive[:])
	same(t, "message 3", encrypt(t, atRequester.Send, unhex(t, v.Messages[2][0])), unhex(t, v.Messages[2][1]))
	same(t, "message 4", encrypt(t, atServer.Send, unhex(t, v.Messages[3][0])), unhex(t, v.Messages[3][1]))
}

// encrypt encrypts the first message after a handshake, as the Noise specification does.
func encrypt(t *testing.T, key [SecretSize]byte, payload []byte) []byte {
	t.Helper()
	block, err := aes.NewCipher(key[:])
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return aead.Seal(nil, make([]byte, aead.NonceSize()), payload, nil)
}

func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("%s is %x, want %x", what, got, want)
	}
}

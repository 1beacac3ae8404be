package handshake

import (
	"crypto/rand"
	"testing"
)

// BenchmarkAccept measures the server's part of a handshake: message 1 and message 2.
func BenchmarkAccept(b *testing.B) {
	for _, f := range []struct {
		name string
		form Form
	}{{"IK", IK}, {"NNpsk0", NNpsk0}} {
		b.Run(f.name, func(b *testing.B) {
			requester, server := ends(b, f.form)
			_, m1 := request(b, &requester, "private data")
			payload := make([]byte, 88)
			b.ReportAllocs()
			for b.Loop() {
				var s Secrets
				if _, err := respond(b, &server, m1).Reply(rand.Reader, nil, payload, &s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkForged measures a message 1 that does not authenticate.
func BenchmarkForged(b *testing.B) {
	_, server := ends(b, IK)
	m1 := make([]byte, IK.RequestHead()+Overhead)
	_, _ = rand.Read(m1)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Respond(&server, nil, m1); err != ErrAuth {
			b.Fatal(err)
		}
	}
}

// BenchmarkConnect measures the requester's part.
func BenchmarkConnect(b *testing.B) {
	requester, server := ends(b, IK)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r, m1 := request(b, &requester, "")
		m2, s := reply(b, respond(b, &server, m1), "")
		b.StartTimer()
		if _, err := r.Finish(nil, m2, &s); err != nil {
			b.Fatal(err)
		}
	}
}

package identity

import (
	"regexp"
	"slices"
	"testing"
	"time"
)

// secretText matches a text that could be a key.
var secretText = regexp.MustCompile(`[A-Za-z0-9+/]{43}`)

// place is how an error begins.
var place = regexp.MustCompile(`^f(:[1-9][0-9]*:| has no key:|: it begins with) `)

func checkError(t *testing.T, err error) {
	if !place.MatchString(err.Error()) || secretText.MatchString(err.Error()) {
		t.Errorf("error without a place, or with a key: %v", err)
	}
}

// FuzzKeys: a text is an error with its place, or each of its keys is found.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(text(1) + "\n" + text(2) + " # comment\r\n\n"))
	f.Add([]byte(text(1) + " " + text(2)))
	f.Add([]byte(text(0)))
	f.Fuzz(func(t *testing.T, text []byte) {
		before := slices.Clone(text)
		k, err := parseKeys("f", text)
		if !slices.Equal(text, before) {
			t.Fatal("the text was changed")
		}
		if err != nil {
			checkError(t, err)
			return
		}
		n := 0
		for range lines(text) {
			n++
		}
		if public := k.Public(); len(public) != n || k.Connect().Public() != public[0] {
			t.Fatalf("%d keys in %d lines", len(public), n)
		}
		for _, p := range k.Public() {
			if k.Find(p.ID()).Public() != p {
				t.Errorf("%s is not found", Text(p))
			}
		}
	})
}

// FuzzPeers: a text is an error with its place, or each of its peers is found, has sane properties, and is read the same
// a second time.
func FuzzPeers(f *testing.F) {
	f.Add([]byte(text(1) + " name=web-1 from=10.0.0.0/8,fd00::1 services=7,100-199,0x4d memory=read expires=2027-01-31 connections=100 half-open=8 rate=50 bytes=64M\n"))
	f.Add([]byte("psk:" + text(1) + " expires=2027-01-31T18:00:00+01:00 # x\n" + text(2) + "\n"))
	f.Add([]byte(text(1) + " " + text(2)))
	f.Add([]byte("psk:" + text(1) + "\npsk:" + text(1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parsePeers("f", text)
		if err != nil {
			checkError(t, err)
			return
		}
		again, err := parsePeers("f", text)
		if err != nil || len(p.removed(again)) > 0 || len(again.removed(p)) > 0 {
			t.Fatalf("another result: %v", err)
		}
		for _, peer := range p.peers {
			checkPeer(t, p, peer)
		}
	})
}

func checkPeer(t *testing.T, p *Policy, peer *Peer) {
	l := peer.limits
	if p.Find(peer.id) != peer || l.Connections < 0 || l.HalfOpen < 0 || l.Rate < 0 || l.Bytes < 0 || l.Memory > WriteAccess {
		t.Errorf("%v: %+v", peer, l)
	}
	for _, prefix := range peer.from {
		for _, s := range peer.services {
			first := peer.Permit(prefix.Addr(), s.first, time.Unix(0, 0))
			last := peer.Permit(prefix.Addr(), s.last, time.Unix(0, 0))
			if first != Permitted || last != Permitted {
				t.Errorf("%v from %v to %v: %v, %v", peer, prefix, s, first, last)
			}
		}
	}
	peer.drop()
}

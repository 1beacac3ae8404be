package main

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// TestSlowest: the first receiver that has nothing yet counts, one that is left out does not.
func TestSlowest(t *testing.T) {
	has := func(chunks int) *receiver { return &receiver{written: chunks, credited: chunks} }
	out := &receiver{err: errors.New("left out")}
	for _, tt := range []struct {
		all  []*receiver
		want int
	}{{nil, 0}, {[]*receiver{out}, 0}, {[]*receiver{has(0), has(5)}, 0}, {[]*receiver{has(5), has(0)}, 0}, {[]*receiver{out, has(7), has(5)}, 5}} {
		if got := (&sender{all: tt.all}).slowest(); got != tt.want {
			t.Errorf("%d receivers: got %d, want %d", len(tt.all), got, tt.want)
		}
	}
}

// TestOffer: no name leads out of the directory.
func TestOffer(t *testing.T) {
	for _, name := range []string{"file", "file.iso", "..."} {
		got, size, err := parseOffer(offer(name, 1<<40))
		if got != name || size != 1<<40 || err != nil {
			t.Errorf("%q: got %q, %d, %v", name, got, size, err)
		}
	}
	for _, bad := range [][]byte{nil, offer("", 1), offer("a", -1), offer(".", 1), offer("..", 1), offer("/", 1),
		offer("../a", 1), offer("/etc/a", 1), offer("a/b", 1), offer("a/", 1)} {
		if name, size, err := parseOffer(bad); err == nil {
			t.Errorf("%q is taken as %q of %d bytes", bad, name, size)
		}
	}
}

// TestSenderLeaves: a sender that leaves in the middle of its file, or before it, keeps no other from sending.
func TestSenderLeaves(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	open := func(name string) *dat.IA {
		ia, err := dat.Open(name, dat.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ia.Close() })
		return ia
	}
	dir, at := t.TempDir(), netip.MustParseAddr("127.81.0.1")
	receiver, done := open("udp:"+at.String()), make(chan error)
	go func() { done <- receive(ctx, receiver, dir) }()
	sender := open("udp:127.81.0.2")
	offerAndLeave(t, sender, at)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := send(ctx, sender, file, []string{at.String()}); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "file")); string(got) != "content" {
		t.Errorf("received %q, %v", got, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// offerAndLeave connects as a sender and disconnects when it is accepted.
func offerAndLeave(t *testing.T, ia *dat.IA, to netip.Addr) {
	t.Helper()
	pz, err1 := ia.CreatePZ()
	evd, err2 := ia.CreateEVD(8, nil, dat.EVDConnection|dat.EVDDTO)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	ep, err := ia.CreateEP(pz, evd, evd, evd, nil)
	if err == nil {
		err = ep.Connect(to, service, 10*time.Second, offer("other", 1<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []dat.EventNumber{dat.EventEstablished, dat.EventDisconnected} {
		var ev dat.Event
		if _, err := evd.WaitContext(t.Context(), 1, &ev); err != nil || ev.Number != want {
			t.Fatalf("event %v, %v, want %v", ev.Number, err, want)
		}
		if want == dat.EventEstablished {
			if err := ep.Disconnect(dat.CloseAbrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
}

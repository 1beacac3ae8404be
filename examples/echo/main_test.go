package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/examples/places"
)

// TestPlaceIsFreeAfterLastEvent: a client that is disconnected in favour of another keeps its place until the server
// has taken its last event. The dispatcher therefore never has events of more than maxClients clients.
func TestPlaceIsFreeAfterLastEvent(t *testing.T) {
	ia := open(t, "127.82.0.1")
	pz, err1 := ia.CreatePZ()
	evd, err2 := ia.CreateEVD(maxClients*(2*window+3), nil, dat.EVDCR|dat.EVDConnection|dat.EVDDTO)
	_, err3 := ia.CreatePSP(service, evd, dat.PSPConsumer)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	s := server{ia: ia, pz: pz, evd: evd, places: places.New(maxClients), buffers: map[*dat.EP]*dat.LMR{}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	handle := func(want dat.EventNumber) { // takes all events, and handles the first one of the given number
		t.Helper()
		for ev, err := range evd.Events(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Number != want {
				continue
			}
			if err := s.handle(ev); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	asks := func(addr string, n int) (established <-chan error) {
		client, all := open(t, addr), make(chan error, n)
		for range n {
			go func() {
				_, err := dial(ctx, client, netip.MustParseAddr("127.82.0.1"))
				all <- err
			}()
			handle(dat.EventConnectionRequest)
		}
		return all
	}
	for host, free := 10, maxClients; free > 0; host++ { // each host takes as many places as it leaves
		n := (free + 1) / 2
		asks(fmt.Sprintf("127.82.0.%d", host), n)
		free -= n
	}
	before := maps.Clone(s.buffers)
	if s.places.Len() != maxClients || len(before) != maxClients {
		t.Fatalf("%d places taken, %d buffers", s.places.Len(), len(before))
	}
	established := asks("127.82.0.4", 1)
	if s.places.Len() != maxClients || !maps.Equal(s.buffers, before) {
		t.Errorf("%d places taken, %d buffers while the last event of a client is queued", s.places.Len(), len(s.buffers))
	}
	handle(dat.EventDisconnected)
	if err := <-established; err != nil {
		t.Error(err)
	}
	if s.places.Len() != maxClients || len(s.buffers) != maxClients || maps.Equal(s.buffers, before) {
		t.Errorf("%d places taken, %d buffers then", s.places.Len(), len(s.buffers))
	}
}

func open(t *testing.T, addr string) *dat.IA {
	t.Helper()
	ia, err := dat.Open("udp:"+addr, dat.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ia.Close() })
	return ia
}

// TestClientsThatDoNothing: idle clients of one host get at most half of the places. Another host still gets a
// connection.
func TestClientsThatDoNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ia, done, at := open(t, "127.82.1.1"), make(chan error), netip.MustParseAddr("127.82.1.1")
	go func() { done <- serve(ctx, ia) }()
	idle := open(t, "127.82.1.2")
	for range maxClients / 2 {
		if _, err := dial(ctx, idle, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dial(ctx, idle, at); err == nil || !strings.Contains(err.Error(), "as many clients as it takes") {
		t.Errorf("one more than half of the places: %v", err)
	}
	var out bytes.Buffer
	if err := talk(ctx, open(t, "127.82.1.3"), at, strings.NewReader("hello\n"), &out); err != nil || !strings.HasPrefix(out.String(), "hello\t") {
		t.Errorf("%q, %v", out.String(), err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestForeignAnswer: a server that answers with other bytes than it got cannot print them on the client's terminal.
func TestForeignAnswer(t *testing.T) {
	const at = "127.82.2.1"
	ia := open(t, at)
	pz, err1 := ia.CreatePZ()
	evd, err2 := ia.CreateEVD(8, nil, dat.EVDCR|dat.EVDConnection|dat.EVDDTO)
	_, err3 := ia.CreatePSP(service, evd, dat.PSPConsumer)
	ep, err4 := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
	mem, err5 := ia.CreateLMR([]byte("\x1b]0;owned\a"), pz, dat.MemLocalRead|dat.MemLocalWrite)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	room, err := ia.CreateLMR(make([]byte, lineSize), pz, dat.MemLocalWrite)
	if err == nil {
		err = ep.PostRecv([]dat.LMRTriplet{room.Segment(0, lineSize)}, 0, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		done <- talk(t.Context(), open(t, "127.82.2.2"), netip.MustParseAddr(at), strings.NewReader("hello\n"), &out)
	}()
	for ev, err := range evd.Events(t.Context()) {
		if err == nil && ev.Number == dat.EventConnectionRequest {
			err = ev.CR.Accept(ep, nil)
		} else if err == nil && ev.Op == dat.DTOReceive && ev.Number == dat.EventDTOCompletion {
			if err = ep.PostSend([]dat.LMRTriplet{mem.Segment(0, 10)}, 0, 0); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err == nil || strings.ContainsRune(err.Error(), 0x1b) || out.Len() != 0 {
		t.Errorf("printed %q, error %v", out.String(), err)
	}
}

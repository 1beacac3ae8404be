package main

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// TestClientsThatDoNotConfirm: clients that ask for all places and never take a connection up do not keep another from
// coming.
func TestClientsThatDoNotConfirm(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ia, err := dat.Open("udp:127.82.0.1", dat.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer ia.Close()
	s := server{ia: ia, clients: map[*dat.EP]place{}}
	pz, err1 := ia.CreatePZ()
	evd, err2 := ia.CreateEVD(maxClients*(2*window+3), nil, dat.EVDCR|dat.EVDConnection|dat.EVDDTO)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	s.pz, s.evd = pz, evd
	for range maxClients { // as if they had been accepted and had not confirmed
		ep, err1 := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
		mem, err2 := ia.CreateLMR(make([]byte, window*lineSize), pz, dat.MemLocalRead|dat.MemLocalWrite)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		s.clients[ep], s.asking = place{mem: mem}, append(s.asking, ep)
	}
	if _, err := ia.CreatePSP(service, evd, dat.PSPConsumer); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		var err error
		for ev, e := range evd.Events(ctx) {
			if err = e; err == nil {
				err = s.handle(ev)
			}
			if err != nil {
				break
			}
		}
		done <- err
	}()
	client, err := dat.Open("udp:127.82.0.2", dat.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var out bytes.Buffer
	short, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if err := talk(short, client, netip.MustParseAddr("127.82.0.1"), strings.NewReader("hello\n"), &out); err != nil || !strings.HasPrefix(out.String(), "hello\t") {
		t.Errorf("%q, %v", out.String(), err)
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(s.asking) >= maxClients {
		t.Errorf("%d clients are asking still", len(s.asking))
	}
}

// TestClientsThatDoNothing: a host whose clients connect and do nothing gets half of the places, and another host a connection.
func TestClientsThatDoNothing(t *testing.T) {
	open := func(addr string) *dat.IA {
		ia, err := dat.Open("udp:"+addr, dat.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ia.Close() })
		return ia
	}
	ctx, cancel := context.WithCancel(t.Context())
	ia, done, at := open("127.82.1.1"), make(chan error), netip.MustParseAddr("127.82.1.1")
	go func() { done <- serve(ctx, ia) }()
	idle := open("127.82.1.2")
	for range maxClients / 2 {
		if _, err := dial(ctx, idle, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dial(ctx, idle, at); err == nil || !strings.Contains(err.Error(), "as many clients as it takes") {
		t.Errorf("one more than half of the places: %v", err)
	}
	var out bytes.Buffer
	if err := talk(ctx, open("127.82.1.3"), at, strings.NewReader("hello\n"), &out); err != nil || !strings.HasPrefix(out.String(), "hello\t") {
		t.Errorf("%q, %v", out.String(), err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

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
	s := server{ia: ia, clients: map[*dat.EP]*dat.LMR{}}
	pz, err1 := ia.CreatePZ()
	evd, err2 := ia.CreateEVD(maxClients*(2*window+3), nil, dat.EVDCR|dat.EVDConnection|dat.EVDDTO)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	s.pz, s.evd = pz, evd
	for range maxClients { // as if they had been accepted and had not confirmed
		ep, err1 := ia.CreateEP(pz, evd, evd, evd, nil)
		mem, err2 := ia.CreateLMR(make([]byte, window*lineSize), pz, dat.MemLocalRead|dat.MemLocalWrite)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		s.clients[ep], s.asking = mem, append(s.asking, ep)
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

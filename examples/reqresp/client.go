package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// load is the work of the client: the total number of requests, the connections, and the requests outstanding on each.
type load struct {
	server                   netip.Addr
	clients, depth, requests int

	evd             *dat.EVD
	data            []byte
	mem             *dat.LMR
	open            []int // for each slot, the number of events before it is free: an answer and a completion
	asked, answered int
}

func (l *load) run(ctx context.Context, ia *dat.IA) error {
	if min(l.clients, l.depth, l.requests) < 1 {
		return errors.New("--clients, --depth and --requests are at least 1")
	}
	eps, err := l.dial(ctx, ia)
	if err != nil {
		return err
	}
	start := time.Now()
	for slot := range l.open {
		if err := l.begin(eps[slot/l.depth], slot); err != nil {
			return err
		}
	}
	var ev dat.Event
	for l.answered < l.requests {
		if _, err := l.evd.WaitContext(ctx, 1, &ev); err != nil {
			return err
		}
		if err := l.handle(&ev); err != nil {
			return err
		}
	}
	took := time.Since(start)
	fmt.Printf("%d requests over %d connections, %d outstanding on each: %v, %.0f requests/s\n",
		l.answered, len(eps), l.depth, took.Round(time.Millisecond), float64(l.answered)/took.Seconds())
	return nil
}

// dial connects, and registers memory for the number of requests that the server allows.
func (l *load) dial(ctx context.Context, ia *dat.IA) ([]*dat.EP, error) {
	pz, err := ia.CreatePZ()
	if err != nil {
		return nil, err
	}
	// A slot has two outstanding receives or completions, and a connection has two events of its own.
	if l.evd, err = ia.CreateEVD(l.clients*(2*credits+2), nil, dat.EVDConnection|dat.EVDDTO); err != nil {
		return nil, err
	}
	eps := make([]*dat.EP, l.clients)
	for i := range eps {
		if eps[i], err = ia.CreateEP(pz, dat.EPConfig{RecvEVD: l.evd, RequestEVD: l.evd, ConnectEVD: l.evd}); err != nil {
			return nil, err
		}
		if err := eps[i].Connect(l.server, service, 5*time.Second, nil); err != nil {
			return nil, err
		}
	}
	for range eps {
		var ev dat.Event
		if _, err := l.evd.WaitContext(ctx, 1, &ev); err != nil {
			return nil, err
		}
		if ev.Number != dat.EventEstablished || len(ev.PrivateData) != 1 {
			return nil, fmt.Errorf("no connection to %v: %v %q: is the server running there, and reachable?", l.server, ev.Number, ev.PrivateData)
		}
		l.depth = min(l.depth, int(ev.PrivateData[0]))
	}
	l.open = make([]int, l.clients*l.depth)
	l.data = make([]byte, len(l.open)*slotSize)
	l.mem, err = ia.CreateLMR(l.data, pz, dat.MemLocalRead|dat.MemLocalWrite)
	return eps, err
}

// begin posts the first receive of a slot and sends a request. Each request has its own receive, so the server always
// has credit for its answers.
func (l *load) begin(ep *dat.EP, slot int) error {
	if err := l.receive(ep, slot); err != nil {
		return err
	}
	return l.ask(ep, slot)
}

func (l *load) receive(ep *dat.EP, slot int) error {
	return ep.PostRecv([]dat.LMRTriplet{l.mem.Segment(slot*slotSize+requestSize, answerSize)}, uint64(slot), dat.CompletionDefault)
}

// ask sends the next request, unless all have been sent. The identifier of a request is its slot.
func (l *load) ask(ep *dat.EP, slot int) error {
	if l.asked == l.requests {
		return nil
	}
	l.asked++
	l.open[slot] = 2
	request := l.data[slot*slotSize:][:requestSize]
	binary.LittleEndian.PutUint64(request, uint64(slot))
	binary.LittleEndian.PutUint64(request[8:], uint64(l.asked))
	return ep.PostSend([]dat.LMRTriplet{l.mem.Segment(slot*slotSize, requestSize)}, uint64(slot), dat.CompletionDefault)
}

func (l *load) handle(ev *dat.Event) error {
	if ev.Number != dat.EventDTOCompletion || ev.Status != dat.DTOSuccess {
		return fmt.Errorf("the server has ended a connection: %v %v", ev.Number, ev.Status)
	}
	slot := int(ev.Cookie) // the slot whose request has completed
	if ev.Op == dat.DTOReceive {
		var err error
		if slot, err = l.check(ev); err != nil {
			return err
		}
		l.answered++
		if err := l.receive(ev.EP, int(ev.Cookie)); err != nil {
			return err
		}
	}
	if l.open[slot]--; l.open[slot] > 0 {
		return nil
	}
	return l.ask(ev.EP, slot)
}

// check returns the slot of the request that an answer belongs to. Receives complete in the order in which they were
// posted, but answers may come in any order. The identifier in the answer is therefore decisive, not the receive's
// slot.
func (l *load) check(ev *dat.Event) (slot int, err error) {
	answer := l.data[int(ev.Cookie)*slotSize+requestSize:][:answerSize]
	id := binary.LittleEndian.Uint64(answer)
	if ev.Length != answerSize || id >= uint64(len(l.open)) || l.open[id] == 0 {
		return 0, fmt.Errorf("an answer to no request: %x", answer)
	}
	request := l.data[int(id)*slotSize:][:requestSize]
	if got, want := binary.LittleEndian.Uint32(answer[8:]), crc32.Checksum(request[8:], castagnoli); got != want {
		return 0, fmt.Errorf("request %d: the server has computed %08x, not %08x", id, got, want)
	}
	return int(id), nil
}

// Command reqresp answers requests of many clients, each with many requests outstanding. All clients share one receive
// queue, so the server's memory depends on the credits that it gives. A request is an identifier and a payload; the
// answer is the identifier and the payload's CRC.
//
//	reqresp --ia udp:127.0.0.1                                                          serves
//	reqresp --ia udp:127.0.0.2 --to 127.0.0.1 --clients 4 --depth 32 --requests 100000     asks
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/examples/places"
)

const (
	service     = 8
	requestSize = 1024 // largest size of a request in bytes: an identifier of 8 bytes, and the payload
	answerSize  = 12   // size of an answer in bytes: the identifier and a CRC of 4 bytes
	maxClients  = 64
	// credits is the number of requests that a client may have outstanding; the server sends it with the accept. The
	// shared queue has as many receives as all clients have credits, so no request finds it empty.
	credits = 64
	slots   = maxClients * credits
	// slotSize is the size of a slot in bytes: a request, followed by its answer.
	slotSize = requestSize + 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func main() {
	name := flag.String("ia", "udp:127.0.0.1", "adapter: udp:ADDRESS, xdp:INTERFACE or auto:INTERFACE")
	var l load
	flag.Func("to", "IP address of the server to ask; without it, serve", func(s string) (err error) {
		l.server, err = netip.ParseAddr(s)
		return err
	})
	flag.IntVar(&l.clients, "clients", 4, "connections to ask over")
	flag.IntVar(&l.depth, "depth", 32, "requests outstanding on each; never more than the server allows")
	flag.IntVar(&l.requests, "requests", 100000, "requests in all")
	flag.Parse()
	// ^C ends a wait, and with it run. run closes the adapter, which notifies the peers.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *name, l); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "reqresp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, l load) error {
	o := dat.DefaultOptions()
	// The end of a connection with a shared queue is also reported as an asynchronous event. This program needs no such
	// events, because its own dispatcher reports the end too. Unread events would fill the asynchronous dispatcher.
	o.AsyncQLen = dat.NoAsyncEVD
	ia, err := dat.Open(name, o)
	if err != nil {
		return err
	}
	defer ia.Close() // abruptly: it frees every object of the adapter
	if l.server.IsValid() {
		return l.run(ctx, ia)
	}
	return serve(ctx, ia)
}

// server has one set of slots for all clients. A slot is in the shared queue, or holds a request that was received or
// is being answered. The cookie of every posted operation is the number of its slot.
type server struct {
	ia     *dat.IA
	pz     *dat.PZ
	evd    *dat.EVD
	srq    *dat.SRQ
	data   []byte
	mem    *dat.LMR
	places *places.Table
}

func serve(ctx context.Context, ia *dat.IA) error {
	s := &server{ia: ia, data: make([]byte, slots*slotSize), places: places.New(maxClients)}
	if err := s.setUp(); err != nil {
		return err
	}
	about, err := ia.Query()
	if err != nil {
		return err
	}
	fmt.Printf("serving on %v (%s)\n", about.Address, about.Mode)
	for ev, err := range s.evd.Events(ctx) {
		if err != nil {
			return err
		}
		// An error of one client does not affect the other clients.
		if err := s.handle(ev); err != nil {
			fmt.Fprintln(os.Stderr, "reqresp:", err)
		}
	}
	return nil
}

func (s *server) setUp() (err error) {
	if s.pz, err = s.ia.CreatePZ(); err != nil {
		return err
	}
	if s.mem, err = s.ia.CreateLMR(s.data, s.pz, dat.MemLocalRead|dat.MemLocalWrite); err != nil {
		return err
	}
	// A slot has one completion at a time. A client has a request, an establishment and a disconnection.
	if s.evd, err = s.ia.CreateEVD(slots+3*maxClients, nil, dat.EVDCR|dat.EVDConnection|dat.EVDDTO); err != nil {
		return err
	}
	if s.srq, err = s.ia.CreateSRQ(s.pz, dat.SRQAttr{MaxRecvDTOs: slots}); err != nil {
		return err
	}
	for slot := range slots {
		if err := s.receive(slot); err != nil {
			return err
		}
	}
	_, err = s.ia.CreatePSP(service, s.evd, dat.PSPConsumer)
	return err
}

// receive posts a slot to the shared queue.
func (s *server) receive(slot int) error {
	return s.srq.PostRecv([]dat.LMRTriplet{s.mem.Segment(slot*slotSize, requestSize)}, uint64(slot))
}

func (s *server) handle(ev *dat.Event) error {
	switch ev.Number {
	case dat.EventConnectionRequest:
		return s.accept(ev.CR)
	case dat.EventDTOCompletion:
		if ev.Op == dat.DTOReceive && ev.Status == dat.DTOSuccess && s.answer(ev) == nil {
			return nil
		}
		// The answer was sent, or the client has left: the slot receives another request.
		return s.receive(int(ev.Cookie))
	case dat.EventDisconnected, dat.EventBroken, dat.EventAcceptCompletionError:
		// The client's slots return with their completions, which stay in the dispatcher when the endpoint is freed.
		next, err := s.places.Leave(ev.EP), ev.EP.Free()
		if next != nil {
			err = errors.Join(err, s.accept(next))
		}
		return err
	default: // a connection is established: requests will arrive
		s.places.Settle(ev.EP)
		return nil
	}
}

func (s *server) accept(cr *dat.CR) error {
	host, ok, err := s.places.Admit(cr)
	if !ok {
		return err
	}
	attr := dat.DefaultEPAttr()
	attr.MaxRequestDTOs = credits // largest number of outstanding answers
	ep, err := s.ia.CreateEP(s.pz, dat.EPConfig{RecvEVD: s.evd, RequestEVD: s.evd, ConnectEVD: s.evd, SRQ: s.srq, Attr: &attr})
	if err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	if err := cr.Accept(ep, []byte{credits}); err != nil {
		return errors.Join(err, cr.Reject(nil), ep.Free())
	}
	s.places.Enter(ep, host)
	return nil
}

// answer computes the answer to a request and sends it from the same slot.
func (s *server) answer(ev *dat.Event) error {
	if ev.Length < 8 {
		return errors.Join(errors.New("a request without an identifier"), ev.EP.Disconnect(dat.CloseAbrupt))
	}
	at := int(ev.Cookie) * slotSize
	request, answer := s.data[at:][:ev.Length], s.data[at+requestSize:][:answerSize]
	copy(answer, request[:8])
	binary.LittleEndian.PutUint32(answer[8:], crc32.Checksum(request[8:], castagnoli))
	return ev.EP.PostSend([]dat.LMRTriplet{s.mem.Segment(at+requestSize, answerSize)}, ev.Cookie, dat.CompletionDefault)
}

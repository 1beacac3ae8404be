// Command echo is the smallest pair of programs that use DAT. The server sends every message back. The client sends the
// lines of its standard input and prints the round-trip time of each.
//
//	echo --ia udp:127.0.0.1                    serves
//	echo --ia udp:127.0.0.2 --to 127.0.0.1     sends
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/examples/places"
)

const (
	service    = 7    // connection qualifier, the counterpart of a port number
	lineSize   = 4096 // largest length of a line in bytes
	window     = 4    // number of messages of one client for which the server has buffers
	maxClients = 64
)

func main() {
	name := flag.String("ia", "udp:127.0.0.1", "adapter: udp:ADDRESS, xdp:INTERFACE or auto:INTERFACE")
	to := flag.String("to", "", "IP address of the server to send to; without it, serve")
	flag.Parse()
	// ^C ends a wait, and with it run. run closes the adapter, which notifies the peer.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *name, *to); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, to string) error {
	ia, err := dat.Open(name, dat.DefaultOptions())
	if err != nil {
		return err
	}
	// Close is abrupt: it frees every object of the adapter, in any state.
	defer ia.Close()
	if to == "" {
		return serve(ctx, ia)
	}
	server, err := netip.ParseAddr(to)
	if err != nil {
		return fmt.Errorf("--to %s: give the IP address that the server prints", to)
	}
	return talk(ctx, ia, server, os.Stdin, os.Stdout)
}

// server has one adapter, one protection zone and one dispatcher for all clients.
type server struct {
	ia      *dat.IA
	pz      *dat.PZ
	evd     *dat.EVD
	places  *places.Table
	buffers map[*dat.EP]*dat.LMR // memory of each client
}

func serve(ctx context.Context, ia *dat.IA) error {
	s := server{ia: ia, places: places.New(maxClients), buffers: map[*dat.EP]*dat.LMR{}}
	var err error
	if s.pz, err = ia.CreatePZ(); err != nil {
		return err
	}
	// The dispatcher has room for all events that can be outstanding: a receive and a send for each buffer, and for
	// each client a connection request, an establishment and a disconnection. If a dispatcher overflows, it loses
	// events, and Events returns an error.
	s.evd, err = ia.CreateEVD(maxClients*(2*window+3), nil, dat.EVDCR|dat.EVDConnection|dat.EVDDTO)
	if err != nil {
		return err
	}
	return places.Serve(ctx, ia, s.evd, "echo", service, s.handle)
}

func (s *server) handle(ev *dat.Event) error {
	switch ev.Number {
	case dat.EventConnectionRequest:
		return s.accept(ev.CR)
	case dat.EventDTOCompletion:
		return s.turn(ev)
	case dat.EventDisconnected, dat.EventBroken, dat.EventAcceptCompletionError:
		return s.drop(ev.EP)
	default: // a connection is established; its receives are already posted
		s.places.Settle(ev.EP)
		return nil
	}
}

// accept creates an endpoint and memory for a client. It posts the receives before the client can send.
func (s *server) accept(cr *dat.CR) (err error) {
	host, ok, err := s.places.Admit(cr)
	if !ok {
		return err
	}
	ep, err := s.ia.CreateEP(s.pz, dat.EPConfig{RecvEVD: s.evd, RequestEVD: s.evd, ConnectEVD: s.evd})
	if err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	defer func() {
		if err != nil { // reject the client, and free its objects
			err = errors.Join(err, cr.Reject(nil), s.drop(ep))
		}
	}()
	mem, err := s.ia.CreateLMR(make([]byte, window*lineSize), s.pz, dat.MemLocalRead|dat.MemLocalWrite)
	if err != nil {
		return errors.Join(err, ep.Free())
	}
	s.places.Enter(ep, host)
	s.buffers[ep] = mem
	for slot := range window {
		if err := ep.PostRecv(buffer(mem, slot, lineSize), uint64(slot), dat.CompletionDefault); err != nil {
			return err
		}
	}
	return cr.Accept(ep, nil)
}

// buffer returns the first n bytes of a slot as a list of one segment. A list of several would scatter a message.
func buffer(mem *dat.LMR, slot, n int) []dat.LMRTriplet {
	return []dat.LMRTriplet{mem.Segment(slot*lineSize, n)}
}

// turn handles a completion. A received message is sent back from the buffer that it was received into. When this send
// has completed, the buffer belongs to the program again, and turn posts it as a receive.
func (s *server) turn(ev *dat.Event) error {
	mem, slot := s.buffers[ev.EP], int(ev.Cookie)
	switch {
	case ev.Status != dat.DTOSuccess || mem == nil: // the connection has ended, which another event reports
		return nil
	case ev.Op == dat.DTOReceive:
		return ev.EP.PostSend(buffer(mem, slot, int(ev.Length)), ev.Cookie, dat.CompletionDefault)
	default:
		return ev.EP.PostRecv(buffer(mem, slot, lineSize), ev.Cookie, dat.CompletionDefault)
	}
}

// drop frees the objects of a client, once. It then accepts the request that waits for the client's place.
func (s *server) drop(ep *dat.EP) error {
	mem := s.buffers[ep]
	if mem == nil {
		return nil
	}
	delete(s.buffers, ep)
	next := s.places.Leave(ep)
	err := errors.Join(ep.Free(), mem.Free())
	if next != nil {
		err = errors.Join(err, s.accept(next))
	}
	return err
}

// client is one connection, with a buffer to send from and one to receive into.
type client struct {
	ep   *dat.EP
	evd  *dat.EVD
	data []byte
	mem  *dat.LMR
}

// talk sends every line of the input.
func talk(ctx context.Context, ia *dat.IA, server netip.Addr, in io.Reader, out io.Writer) error {
	c, err := dial(ctx, ia, server)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, lineSize), lineSize)
	for ctx.Err() == nil && lines.Scan() {
		took, err := c.roundTrip(ctx, lines.Bytes())
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\t%v\n", lines.Bytes(), took)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: a line may have %d bytes", err, lineSize-1)
	}
	return nil
}

func dial(ctx context.Context, ia *dat.IA, server netip.Addr) (*client, error) {
	pz, err := ia.CreatePZ()
	if err != nil {
		return nil, err
	}
	c := &client{data: make([]byte, 2*lineSize)}
	if c.mem, err = ia.CreateLMR(c.data, pz, dat.MemLocalRead|dat.MemLocalWrite); err != nil {
		return nil, err
	}
	if c.evd, err = ia.CreateEVD(8, nil, dat.EVDConnection|dat.EVDDTO); err != nil {
		return nil, err
	}
	if c.ep, err = ia.CreateEP(pz, dat.EPConfig{RecvEVD: c.evd, RequestEVD: c.evd, ConnectEVD: c.evd}); err != nil {
		return nil, err
	}
	if err := c.ep.Connect(server, service, 5*time.Second, nil); err != nil {
		return nil, err
	}
	var ev dat.Event
	if _, err := c.evd.WaitContext(ctx, 1, &ev); err != nil {
		return nil, err
	}
	if ev.Number != dat.EventEstablished {
		return nil, fmt.Errorf("no connection to %v: %w %q: is the server running there, and reachable?", server, ev.Err(), ev.PrivateData)
	}
	return c, nil
}

// roundTrip posts the receive before the send, so that the answer always finds a receive.
func (c *client) roundTrip(ctx context.Context, line []byte) (took time.Duration, err error) {
	copy(c.data, line)
	if err := c.ep.PostRecv(buffer(c.mem, 1, lineSize), 0, dat.CompletionDefault); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := c.ep.PostSend(buffer(c.mem, 0, len(line)), 0, dat.CompletionDefault); err != nil {
		return 0, err
	}
	for range 2 { // the send and the receive complete in any order
		var ev dat.Event
		if _, err := c.evd.WaitContext(ctx, 1, &ev); err != nil {
			return 0, err
		}
		if ev.Number != dat.EventDTOCompletion || ev.Status != dat.DTOSuccess {
			return 0, fmt.Errorf("the server has ended the connection: %v %v", ev.Number, ev.Status)
		}
		if ev.Op == dat.DTOReceive {
			took = time.Since(start)
			if answer := c.data[lineSize:][:ev.Length]; !bytes.Equal(answer, line) { // quoted: it may control the terminal
				return 0, fmt.Errorf("the server has answered %q", answer)
			}
		}
	}
	return took, nil
}

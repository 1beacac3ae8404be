// Command table is a key-value store. The server registers a table and tells clients its address; it does nothing on the
// data path. Clients get a value by an RDMA read, and put it by an atomic and an RDMA write. table.go describes the
// table and its guarantees.
//
//	table --ia udp:127.0.0.1                                        serves
//	table --ia udp:127.0.0.2 --to 127.0.0.1 put colour blue         stores
//	table --ia udp:127.0.0.2 --to 127.0.0.1 get colour              prints blue
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/examples/places"
)

const (
	service    = 9
	maxClients = 64
)

func main() {
	name := flag.String("ia", "udp:127.0.0.1", "adapter: udp:ADDRESS, xdp:INTERFACE or auto:INTERFACE")
	to := flag.String("to", "", "IP address of the server to ask; without it, serve")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: table [--ia ADAPTER] | table [--ia ADAPTER] --to ADDRESS get KEY | put KEY VALUE")
		flag.PrintDefaults()
	}
	flag.Parse()
	// ^C ends a wait, and with it run. run closes the adapter, which notifies the peers.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *name, *to, flag.Args()); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, to string, args []string) error {
	ia, err := dat.Open(name, dat.DefaultOptions())
	if err != nil {
		return err
	}
	defer ia.Close() // abruptly: it frees every object of the adapter
	if to == "" {
		return serve(ctx, ia)
	}
	server, err := netip.ParseAddr(to)
	if err != nil {
		return fmt.Errorf("--to %s: give the IP address that the server prints", to)
	}
	c, err := dial(ctx, ia, server)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 2 && args[0] == "get":
		value, err := c.get(ctx, args[1])
		if err == nil {
			fmt.Println(printable(value))
		}
		return err
	case len(args) == 3 && args[0] == "put":
		return c.put(ctx, args[1], args[2])
	}
	return errors.New("say what to do: get KEY, or put KEY VALUE")
}

// printable returns a value that may go to a terminal: quoted, if it has control characters or is not UTF-8. Single
// bytes from 0x80 on are control characters too, for terminals with a character set of 8 bits.
func printable(value string) string {
	if !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(value)
	}
	return value
}

// server has one adapter, one protection zone and one table for all clients.
type server struct {
	ia     *dat.IA
	pz     *dat.PZ
	evd    *dat.EVD
	table  *dat.LMR
	places *places.Table
}

// serve registers the table and accepts connections. It never reads the table: the adapter serves reads, writes and
// atomics, as a NIC with RDMA would.
func serve(ctx context.Context, ia *dat.IA) error {
	s := &server{ia: ia, places: places.New(maxClients)}
	var err error
	if s.pz, err = ia.CreatePZ(); err != nil {
		return err
	}
	if s.table, err = ia.CreateLMR(make([]byte, tableSize), s.pz, dat.MemAll|dat.MemRemoteAtomic); err != nil {
		return err
	}
	// The dispatcher has room for a request, an establishment and a disconnection per client, and for requests to
	// refuse.
	if s.evd, err = ia.CreateEVD(4*maxClients, nil, dat.EVDCR|dat.EVDConnection); err != nil {
		return err
	}
	return places.Serve(ctx, ia, s.evd, "table", service, s.handle)
}

func (s *server) handle(ev *dat.Event) error {
	switch ev.Number {
	case dat.EventConnectionRequest:
		return s.admit(ev.CR)
	case dat.EventDisconnected, dat.EventBroken, dat.EventAcceptCompletionError:
		next, err := s.places.Leave(ev.EP), ev.EP.Free()
		if next != nil {
			err = errors.Join(err, s.admit(next))
		}
		return err
	default: // a connection is established
		s.places.Settle(ev.EP)
		return nil
	}
}

// admit accepts a client if there is a place for it.
func (s *server) admit(cr *dat.CR) error {
	host, ok, err := s.places.Admit(cr)
	if !ok {
		return err
	}
	return s.accept(cr, host)
}

// accept sends the address of the table to the client. The endpoint has no dispatchers for transfers, because it posts
// none.
func (s *server) accept(cr *dat.CR, host netip.Addr) error {
	private, err := binary.Append(nil, binary.BigEndian, s.table.Remote(0, tableSize))
	if err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	ep, err := s.ia.CreateEP(s.pz, dat.EPConfig{ConnectEVD: s.evd})
	if err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	if err := cr.Accept(ep, private); err != nil {
		return errors.Join(err, cr.Reject(nil), ep.Free())
	}
	s.places.Enter(ep, host)
	return nil
}

// client is a connection to a server, the address of the server's table, and memory for the entries to read and write.
// One goroutine uses it.
type client struct {
	ep    *dat.EP
	evd   *dat.EVD
	table dat.RMRTriplet
	data  []byte // the entries that a key may have, an entry to write, and the result of an atomic
	mem   *dat.LMR
	// patience is how long an entry may be locked or torn before a get or a put fails.
	patience time.Duration
}

// Offsets in client.data.
const (
	writeAt = probes * entrySize
	foundAt = writeAt + entrySize
)

func dial(ctx context.Context, ia *dat.IA, server netip.Addr) (*client, error) {
	pz, err := ia.CreatePZ()
	if err != nil {
		return nil, err
	}
	c := &client{data: make([]byte, foundAt+8), patience: 2 * time.Second}
	if c.mem, err = ia.CreateLMR(c.data, pz, dat.MemLocalRead|dat.MemLocalWrite); err != nil {
		return nil, err
	}
	if c.evd, err = ia.CreateEVD(8, nil, dat.EVDConnection|dat.EVDDTO); err != nil {
		return nil, err
	}
	if c.ep, err = ia.CreateEP(pz, dat.EPConfig{RequestEVD: c.evd, ConnectEVD: c.evd}); err != nil {
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
	if _, err := binary.Decode(ev.PrivateData, binary.BigEndian, &c.table); err != nil || c.table.Length != tableSize {
		return nil, fmt.Errorf("%v serves another table than this program knows", server)
	}
	return c, nil
}

// answerTime is how long the server may take to complete one operation.
const answerTime = 5 * time.Second

// wait waits for the completion of one operation; posted is the error of its post.
func (c *client) wait(ctx context.Context, posted error) error {
	if posted != nil {
		return posted
	}
	limit, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var ev dat.Event
	if _, err := c.evd.WaitContext(limit, 1, &ev); err != nil {
		if limit.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("the server has not answered for %v", answerTime)
		}
		return err
	}
	if ev.Status != dat.DTOSuccess || ev.Number != dat.EventDTOCompletion && ev.Number != dat.EventIBDTO {
		return fmt.Errorf("the server has ended the connection: %v %v", ev.Number, ev.Status)
	}
	return nil
}

// at returns the triplet of n bytes of the server's table.
func (c *client) at(offset, n int) dat.RMRTriplet {
	return dat.RMRTriplet{Context: c.table.Context, Address: c.table.Address + uint64(offset), Length: uint64(n)}
}

// read reads the entries that a key may have, beginning with entry first.
func (c *client) read(ctx context.Context, first int) error {
	to := []dat.LMRTriplet{c.mem.Segment(0, probes*entrySize)}
	return c.wait(ctx, c.ep.PostRDMARead(to, 0, c.at(first*entrySize, probes*entrySize), dat.CompletionDefault))
}

// write writes the entry at writeAt to the table.
func (c *client) write(ctx context.Context, i int) error {
	from := []dat.LMRTriplet{c.mem.Segment(writeAt, entrySize)}
	return c.wait(ctx, c.ep.PostRDMAWrite(from, 0, c.at(i*entrySize, entrySize), dat.CompletionDefault))
}

// swap changes the version of entry i to newVersion if it equals oldVersion. It reports whether it did so.
func (c *client) swap(ctx context.Context, i int, oldVersion, newVersion uint64) (bool, error) {
	found := c.mem.Segment(foundAt, 8)
	err := c.wait(ctx, c.ep.PostCmpSwap(oldVersion, newVersion, found, 0, c.at(i*entrySize+versionAt, 8), dat.CompletionDefault))
	return binary.NativeEndian.Uint64(c.data[foundAt:]) == oldVersion, err
}

package dat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
)

func init() { roles["service"] = beService }

// An exchange is one end of a connection that carries messages of exchangeSize bytes, one at a time in each direction.
type exchange interface {
	send() error
	receive() error
	close()
}

const exchangeSize = 64

// netExchange is an exchange over a connection of package net.
type netExchange struct {
	net.Conn
	buf [exchangeSize]byte
}

func (n *netExchange) send() error {
	_, err := n.Write(n.buf[:])
	return err
}

func (n *netExchange) receive() error {
	_, err := io.ReadFull(n, n.buf[:])
	return err
}

func (n *netExchange) close() { _ = n.Conn.Close() }

// datExchange is an exchange over an endpoint with an event dispatcher of its own.
type datExchange struct {
	ep           *EP
	events       *EVD
	ctx          context.Context
	stop         context.CancelFunc
	ev           Event
	toSend, room []LMRTriplet
}

func newDATExchange(ia *IA, pz *PZ, connect *EVD) (*datExchange, error) {
	lmr, err := ia.CreateLMR(make([]byte, 2*exchangeSize), pz, MemAll)
	if err != nil {
		return nil, err
	}
	d := &datExchange{}
	if d.events, err = ia.CreateEVD(16, nil, EVDDTO); err != nil {
		return nil, err
	}
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.toSend, d.room = []LMRTriplet{lmr.Segment(0, exchangeSize)}, []LMRTriplet{lmr.Segment(exchangeSize, exchangeSize)}
	attr := DefaultEPAttr()
	attr.MaxRecvDTOs, attr.MaxRequestDTOs = 4, 4
	d.ep, err = ia.CreateEP(pz, EPConfig{RecvEVD: d.events, RequestEVD: d.events, ConnectEVD: connect, Attr: &attr})
	for range attr.MaxRecvDTOs {
		err = errors.Join(err, d.ep.PostRecv(d.room, 0, 0))
	}
	return d, err
}

func (d *datExchange) send() error { return d.ep.PostSend(d.toSend, 0, CompletionSuppress) }

func (d *datExchange) receive() error {
	if _, err := d.events.WaitContext(d.ctx, 1, &d.ev); err != nil {
		return err
	}
	if d.ev.Status != DTOSuccess {
		return fmt.Errorf("%v: %v", d.ev.Op, d.ev.Status)
	}
	return d.ep.PostRecv(d.room, 0, 0)
}

func (d *datExchange) close() { d.stop() }

// hand receives n messages from e. For each message it sends a value to the channel, on which another goroutine waits.
// Many services receive in one goroutine and work in another in this way. If e fails, hand ends early.
func hand(e exchange, to chan<- struct{}, n int) {
	defer close(to)
	for range n {
		if e.receive() != nil {
			return
		}
		to <- struct{}{}
	}
}

// answer answers every message on e until e fails. If hop is true, one goroutine receives and another one answers.
func answer(e exchange, hop bool) {
	if !hop {
		for e.receive() == nil && e.send() == nil {
		}
		return
	}
	came := make(chan struct{})
	go hand(e, came, math.MaxInt)
	for range came {
		if e.send() != nil {
			return
		}
	}
}

const servicePort = 7099 // TCP port of the service process

// beService is a process that answers messages over DAT and TCP until it is killed. On connections to testQual and
// servicePort, one goroutine receives and wakes another goroutine over a channel, which answers. On connections to
// testQual+1 and servicePort+1, one goroutine does both.
func beService() error {
	name, o := childOptions()
	ia, err := Open(name, o)
	if err != nil {
		return err
	}
	for i, hop := range []bool{true, false} {
		l, err := net.Listen("tcp", fmt.Sprint(":", servicePort+i))
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go answer(&netExchange{Conn: c}, hop)
			}
		}()
	}
	requests, err := ia.CreateEVD(1024, nil, EVDCR)
	if err != nil {
		return err
	}
	connect, err := ia.CreateEVD(1<<14, nil, EVDConnection)
	if err != nil {
		return err
	}
	pz, err := ia.CreatePZ()
	if err != nil {
		return err
	}
	var psps [2]*PSP
	for i := range psps {
		if psps[i], err = ia.CreatePSP(testQual+ConnQual(i), requests, PSPConsumer); err != nil {
			return err
		}
	}
	fmt.Println("listening")
	var ev Event
	for {
		if _, err := requests.Wait(-1, 1, &ev); err != nil {
			return err
		}
		e, err := newDATExchange(ia, pz, connect)
		if err != nil {
			return err
		}
		if err := ev.CR.Accept(e.ep, nil); err != nil {
			return err
		}
		go answer(e, ev.PSP == psps[0])
	}
}

// startService starts a service process with a number of processors of the Go scheduler, and a mode of its adapter.
func (n serviceNet) startService(b testing.TB, procs int, mode Progress) child {
	b.Setenv("GOMAXPROCS", fmt.Sprint(procs))
	c := startChild(b, "service", n.device(1)+" progress="+mode.String(), 0, 0, func(start func() error) error { return n.Do(lab.B, start) })
	if said := c.says(b); said != "listening" {
		b.Fatal(said)
	}
	return c
}

// serviceNet is the network between the two processes: AF_XDP, or sockets of the kernel.
type serviceNet struct {
	xdpNet
	udp bool
}

func (n serviceNet) device(side int) string {
	if n.udp {
		return "udp:" + n.addr(side).String()
	}
	return n.xdpNet.device(side)
}

func (n serviceNet) open(side int, o Options) (*IA, error) {
	if n.udp {
		return n.openAs(side, n.device(side), o)
	}
	return n.xdpNet.open(side, o)
}

// services connects to the service process.
type services struct {
	net     serviceNet
	peer    child
	ia      *IA
	pz      *PZ
	connect *EVD
}

func newServices(b *testing.B, procs int, mode Progress) *services {
	return newServicesOver(b, serviceNet{xdpNet: newXDP(b).(xdpNet)}, procs, mode)
}

func newServicesOver(b testing.TB, n serviceNet, procs int, mode Progress) *services {
	s := &services{net: n}
	s.peer = n.startService(b, procs, mode)
	h := newHost(b, s.net, 0, Options{Progress: mode})
	s.ia, s.pz = h.ia, h.pz
	s.connect = must(s.ia.CreateEVD(1<<14, nil, EVDConnection))(b)
	return s
}

// dial makes n connections over DAT or TCP to a service with or without a channel.
func (s *services) dial(b testing.TB, transport string, hop bool, n int) (all []exchange) {
	offset := 1
	if hop {
		offset = 0
	}
	for range n {
		if transport == "net" {
			var c net.Conn
			ok(b, s.net.Do(lab.A, func() (err error) {
				c, err = net.Dial("tcp", netip.AddrPortFrom(s.net.addr(1), uint16(servicePort+offset)).String())
				return err
			}))
			all = append(all, &netExchange{Conn: c})
			continue
		}
		e := must(newDATExchange(s.ia, s.pz, s.connect))(b)
		ok(b, e.ep.Connect(s.net.addr(1), testQual+ConnQual(offset), patience, nil))
		await(b, s.connect, EventEstablished)
		all = append(all, e)
	}
	return all
}

// request makes total round trips on e. If hop is true, another goroutine receives.
func request(b testing.TB, e exchange, hop bool, total int) {
	receive := e.receive
	if hop {
		came := make(chan struct{})
		var reader sync.WaitGroup
		reader.Go(func() { hand(e, came, total) })
		defer reader.Wait()
		receive = func() error {
			if _, open := <-came; !open {
				return io.EOF
			}
			return nil
		}
	}
	for range total {
		if err := errors.Join(e.send(), receive()); err != nil {
			b.Error(err)
			return
		}
	}
}

// BenchmarkServices measures requests of 64 bytes between two processes over veth, with DAT over AF_XDP and with TCP of
// package net in the same run. In the variant "hop" there is one connection with one request at a time. At both of its
// ends, one goroutine receives each message and wakes another goroutine over a channel, which sends the next message.
// In the other variants, the name is the number of connections; each connection has one request at a time and a
// goroutine of its own. GOMAXPROCS is the same in both processes.
func BenchmarkServices(b *testing.B) {
	for _, procs := range []int{1, 2, 4} {
		b.Run(fmt.Sprint("procs=", procs), func(b *testing.B) {
			s := newServices(b, procs, ProgressAdaptive)
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			for _, c := range []struct {
				name  string
				hop   bool
				conns int
			}{{"hop", true, 1}, {"1", false, 1}, {"32", false, 32}, {"1000", false, 1000}} {
				if c.conns > 100 && testing.Short() {
					continue
				}
				for _, transport := range []string{"dat", "net"} {
					all := s.dial(b, transport, c.hop, c.conns)
					b.Run(c.name+"/"+transport, func(b *testing.B) { requests(b, all, c.hop) })
					for _, e := range all {
						e.close()
					}
				}
			}
		})
	}
}

// BenchmarkModes measures the variants of BenchmarkServices with DAT in each mode of progress, at GOMAXPROCS 2. The variant
// "seldom" has one request each millisecond. It reports the processor time of this process for each request.
func BenchmarkModes(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for mode := range Progress(len(progressNames)) {
		b.Run(mode.String(), func(b *testing.B) {
			s := newServices(b, 2, mode)
			for _, v := range []struct {
				name  string
				hop   bool
				conns int
			}{{"hop", true, 1}, {"1", false, 1}, {"32", false, 32}} {
				all := s.dial(b, "dat", v.hop, v.conns)
				b.Run(v.name, func(b *testing.B) { requests(b, all, v.hop) })
				if v.name == "1" {
					b.Run("seldom", func(b *testing.B) { seldom(b, all[0]) })
				}
				for _, e := range all {
					e.close()
				}
			}
		})
	}
}

// seldom makes a round trip each millisecond.
func seldom(b *testing.B, e exchange) {
	var spent time.Duration
	before := cpuTime()
	for range b.N {
		time.Sleep(time.Millisecond)
		start := time.Now()
		ok(b, errors.Join(e.send(), e.receive()))
		spent += time.Since(start)
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "µs/request")
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// requests makes b.N round trips on connections that are all used at the same time.
func requests(b *testing.B, all []exchange, hop bool) {
	b.ReportMetric(float64(b.N)/requestAll(b, all, hop, b.N).Seconds()/1e3, "k/s")
}

// requestAll makes n round trips on connections that are all used at the same time, and returns the time that they took.
func requestAll(t testing.TB, all []exchange, hop bool, n int) time.Duration {
	var goroutines sync.WaitGroup
	start := time.Now()
	for _, e := range all {
		goroutines.Go(func() { request(t, e, hop, (n+len(all)-1)/len(all)) })
	}
	goroutines.Wait()
	return time.Since(start)
}

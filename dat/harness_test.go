package dat

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat/internal/progress"
)

// patience is the time limit of every wait in a test. A wait that takes longer hangs.
const patience = 20 * time.Second

// shortNotReady is Limits.NotReady in tests of its end. An emulated machine acknowledges packets in less time; a connection
// whose packets are not acknowledged within the limit breaks with another status.
const shortNotReady = 500 * time.Millisecond

// testQual is the connection qualifier of the service that side b offers. A rule may also use the next 15 qualifiers.
// Each rule of the conformance test gets a different testQual, because the rules share a device, and late packets of
// one rule may arrive during the next rule.
var testQual = firstQual

const firstQual ConnQual = 0xda7

// host is an open adapter with the objects that its endpoints share.
type host struct {
	t       testing.TB
	ia      *IA
	addr    netip.Addr
	pz      *PZ
	cr      *EVD
	psp     *PSP
	ownedBy network
}

// newHost opens an adapter that is closed at the end of the test.
func newHost(t testing.TB, n network, side int, o Options) *host {
	t.Helper()
	ia, err := n.open(side, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ia.Close(); err != nil && !errors.Is(err, ErrInvalidHandle) {
			t.Errorf("closing: %v", err)
		}
	})
	h := &host{t: t, ia: ia, addr: n.addr(side), ownedBy: n}
	h.pz = must(ia.CreatePZ())(t)
	return h
}

// newHosts opens both sides; b listens on testQual.
func newHosts(t testing.TB, n network, o Options) (a, b *host) {
	t.Helper()
	a, b = newHost(t, n, 0, o), newHost(t, n, 1, o)
	b.listen(testQual, 64)
	return a, b
}

func (h *host) listen(q ConnQual, backlog int) {
	h.t.Helper()
	h.cr = must(h.ia.CreateEVD(backlog, nil, EVDCR))(h.t)
	h.psp = must(h.ia.CreatePSP(q, h.cr, PSPConsumer))(h.t)
}

// must(v, err)(t) returns v. It fails the test if err is not nil.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// point is an endpoint with event dispatchers of its own and some memory.
type point struct {
	*EP
	host                   *host
	recv, request, connect *EVD
	lmr                    *LMR
	mem                    []byte
	peer                   *point
}

const pointMem = 64 << 10

func (h *host) point(attr *EPAttr) *point {
	h.t.Helper()
	return h.pointWith(attr, pointMem, 1024)
}

func (h *host) pointWith(attr *EPAttr, mem, qlen int) *point {
	t := h.t
	t.Helper()
	p := &point{host: h, mem: make([]byte, mem)}
	p.recv = must(h.ia.CreateEVD(qlen, nil, EVDDTO))(t)
	p.request = must(h.ia.CreateEVD(qlen, nil, EVDDTO|EVDRMRBind))(t)
	p.connect = must(h.ia.CreateEVD(8, nil, EVDConnection))(t)
	p.lmr = must(h.ia.CreateLMR(p.mem, h.pz, MemAll))(t)
	p.EP = must(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: p.recv, RequestEVD: p.request, ConnectEVD: p.connect, Attr: attr}))(t)
	return p
}

func (p *point) seg(off, n int) []LMRTriplet { return []LMRTriplet{p.lmr.Segment(off, n)} }

// pair connects two new endpoints; b listens on testQual.
func pair(a, b *host, attr *EPAttr) (x, y *point) {
	a.t.Helper()
	x, y = a.point(attr), b.point(attr)
	join(x, y)
	return x, y
}

func join(x, y *point) {
	t := x.host.t
	t.Helper()
	x.peer, y.peer = y, x
	x.dial(y.host, nil)
	if err := y.host.request(t).Accept(y.EP, nil); err != nil {
		t.Fatal(err)
	}
	x.expect(EventEstablished)
	y.expect(EventEstablished)
}

func (p *point) dial(to *host, private []byte) {
	p.host.t.Helper()
	if err := p.Connect(to.addr, testQual, patience, private); err != nil {
		p.host.t.Fatal(err)
	}
}

// request waits for a connection request.
func (h *host) request(t testing.TB) *CR {
	t.Helper()
	return await(t, h.cr, EventConnectionRequest).CR
}

// expect waits for a connection event of the endpoint.
func (p *point) expect(want EventNumber) Event {
	p.host.t.Helper()
	ev := await(p.host.t, p.connect, want)
	if ev.EP != p.EP {
		p.host.t.Errorf("%v is of another endpoint", want)
	}
	return ev
}

// await takes the next event. It fails the test if the event has another number.
func await(t testing.TB, e *EVD, want EventNumber) (ev Event) {
	t.Helper()
	if _, err := e.Wait(patience, 1, &ev); err != nil {
		t.Fatalf("waiting for %v: %v", want, err)
	}
	if ev.Number != want {
		t.Fatalf("got %v (%v), want %v", ev.Number, ev.Status, want)
	}
	return ev
}

// done waits for a completion and compares its fields.
func (p *point) done(e *EVD, cookie uint64, op DTO, want DTOStatus, length int) {
	t := p.host.t
	t.Helper()
	ev := await(t, e, EventDTOCompletion)
	got := fmt.Sprint(ev.Cookie, ev.Op, ev.Status)
	if ws := fmt.Sprint(cookie, op, want); got != ws {
		t.Errorf("completion (cookie, operation, status): got %s, want %s", got, ws)
	}
	if want == DTOSuccess && ev.Length != uint64(length) {
		t.Errorf("completion %d: %d bytes, want %d", cookie, ev.Length, length)
	}
	if ev.EP != p.EP || ev.EVD != e {
		t.Errorf("completion %d names another endpoint or dispatcher", cookie)
	}
	if p.peer != nil && (op == DTORDMAWrite || op == DTORDMARead) {
		p.peer.memoryBarrier()
	}
}

// memoryBarrier separates earlier accesses to the memory of this side from later accesses, whether the engine or the
// test makes them. The Go memory model requires such an order. Normally an event provides it, but the target of an RDMA
// operation gets no event, and the race detector does not see synchronisation through a network.
func (p *point) memoryBarrier() { p.host.ia.a.barrier() }

// expectNoEvent fails the test if one of the dispatchers has an event, or gets an event during some milliseconds of
// polling.
func expectNoEvent(t testing.TB, evds ...*EVD) {
	t.Helper()
	var ev Event
	for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); runtime.Gosched() {
		for _, e := range evds {
			if err := e.Dequeue(&ev); err != ErrQueueEmpty {
				t.Fatalf("unexpected event %v %v, error %v", ev.Number, ev.Status, err)
			}
		}
	}
}

// discard takes the events that are there.
func (p *point) discard() {
	var ev Event
	for _, e := range []*EVD{p.recv, p.request, p.connect} {
		for e.Dequeue(&ev) == nil {
		}
	}
}

func (p *point) still() {
	p.host.t.Helper()
	expectNoEvent(p.host.t, p.recv, p.request, p.connect)
}

// proves that a connection works: a message each way, a write and a read.
func proves(x, y *point) {
	t := x.host.t
	t.Helper()
	x.peer, y.peer = y, x
	for i, p := range []*point{x, y} {
		q := []*point{y, x}[i]
		copy(p.mem, fmt.Sprintf("message %d of %p", i, p))
		ok(t, q.PostRecv(q.seg(1024, 64), 1, 0))
		ok(t, p.PostSend(p.seg(0, 64), 2, 0))
		p.done(p.request, 2, DTOSend, DTOSuccess, 64)
		q.done(q.recv, 1, DTOReceive, DTOSuccess, 64)
		same(t, q.mem[1024:1088], p.mem[:64])
	}
	ok(t, x.PostRDMAWrite(x.seg(0, 64), 3, y.lmr.Remote(2048, 64), 0))
	x.done(x.request, 3, DTORDMAWrite, DTOSuccess, 64)
	same(t, y.mem[2048:2112], x.mem[:64])
	// The read is of memory that only engines write: y may have to send the response again, after x has it.
	ok(t, x.PostRDMARead(x.seg(4096, 64), 4, y.lmr.Remote(2048, 64), 0))
	x.done(x.request, 4, DTORDMARead, DTOSuccess, 64)
	same(t, x.mem[4096:4160], y.mem[2048:2112])
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes differ from the %d wanted (SHA-256 %x, %x)", len(got), len(want), sha256.Sum256(got), sha256.Sum256(want))
	}
}

// wants fails the test if err is not the DAT error want.
func wants(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// eventually waits for a condition that no event reports.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// fillRandom fills memory with bytes that a seed determines.
func fillRandom(b []byte, seed uint64) {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	_, _ = rand.NewChaCha8(key).Read(b) // it never fails
}

// asleep waits until all background owners of an adapter sleep.
func asleep(t testing.TB, h *host) {
	t.Helper()
	eventually(t, "sleep of the background owner", func() bool {
		for _, d := range h.ia.a.drivers {
			if d.Phase() != progress.Sleeping {
				return false
			}
		}
		return true
	})
}

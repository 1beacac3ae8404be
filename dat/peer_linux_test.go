package dat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

func init() { roles["peer"] = bePeer }

// Sizes of the traffic with a peer process. peerMem is the size of the memory for RDMA, in bytes; peerMessage is the
// size of a message, in bytes; peerSlots is the number of receives.
const (
	peerMem     = 8 << 20
	peerMessage = 64 << 10
	peerSlots   = 32
)

// bePeer is the peer process. It opens an adapter, accepts one connection, and receives messages until it is killed.
// The private data that it passes to Accept names the memory of the peer process.
func bePeer() error {
	name, o := childOptions()
	ia, err := Open(name, o)
	if err != nil {
		return err
	}
	pz, err := ia.CreatePZ()
	if err != nil {
		return err
	}
	evd, err := ia.CreateEVD(1024, nil, EVDDTO|EVDConnection|EVDCR)
	if err != nil {
		return err
	}
	lmr, err := ia.CreateLMR(make([]byte, peerMem+peerSlots*peerMessage), pz, MemAll)
	if err != nil {
		return err
	}
	if _, err = ia.CreatePSP(testQual, evd, PSPConsumer); err != nil {
		return err
	}
	fmt.Println("listening")
	var ev Event
	if _, err := evd.Wait(patience, 1, &ev); err != nil {
		return err
	}
	ep, err := ia.CreateEP(pz, EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
	if err != nil {
		return err
	}
	take := func(slot uint64) error {
		return ep.PostRecv([]LMRTriplet{lmr.Segment(peerMem+int(slot)*peerMessage, peerMessage)}, slot, 0)
	}
	for slot := range uint64(peerSlots) {
		if err := take(slot); err != nil {
			return err
		}
	}
	r := lmr.Remote(0, peerMem)
	private := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, r.Context), r.Address)
	if err := ev.CR.Accept(ep, private); err != nil {
		return err
	}
	for {
		if _, err := evd.Wait(patience, 1, &ev); err != nil {
			return err
		}
		if ev.Number == EventDTOCompletion && ev.Status == DTOSuccess {
			if err := take(ev.Cookie); err != nil {
				return err
			}
		}
	}
}

// startPeer starts a peer process on side B and waits until it listens.
func (x xdpNet) startPeer(t *testing.T) child {
	t.Helper()
	c := x.start(t, lab.B, "peer", "xdp:"+lab.Interface, 0)
	if said := c.says(t); said != "listening" {
		t.Fatal(said)
	}
	return c
}

// traffic is a connection with a peer process. It always has writes, sends, reads and receives outstanding.
type traffic struct {
	*point
	remote RMRTriplet
	// out has the outstanding operations, by cookie.
	outstanding map[uint64]DTO
	lastCookie  uint64
	completed   int
}

// Numbers of outstanding operations of each kind, and the sizes of a write and a read in bytes.
const (
	outstandingEach = 4
	rdmaSize        = 256 << 10
)

func (x xdpNet) newTraffic(t *testing.T, h *host) *traffic {
	t.Helper()
	p := h.pointWith(nil, rdmaSize+outstandingEach*rdmaSize, 1024)
	ok(t, p.Connect(x.addr(1), testQual, patience, nil))
	private := p.expect(EventEstablished).PrivateData
	c := &traffic{point: p, outstanding: make(map[uint64]DTO)}
	c.remote = RMRTriplet{Context: binary.BigEndian.Uint32(private), Address: binary.BigEndian.Uint64(private[4:]), Length: rdmaSize}
	for range outstandingEach {
		for _, op := range []DTO{DTORDMAWrite, DTOSend, DTORDMARead, DTOReceive} {
			c.post(t, op)
		}
	}
	return c
}

// post posts one more operation of a kind.
func (c *traffic) post(t *testing.T, op DTO) {
	t.Helper()
	c.lastCookie++
	into := c.seg(rdmaSize*(1+int(c.lastCookie)%outstandingEach), rdmaSize)
	var err error
	switch op {
	case DTORDMAWrite:
		err = c.PostRDMAWrite(c.seg(0, rdmaSize), c.lastCookie, c.remote, 0)
	case DTOSend:
		err = c.PostSend(c.seg(0, peerMessage), c.lastCookie, 0)
	case DTORDMARead:
		err = c.PostRDMARead(into, c.lastCookie, c.remote, 0)
	default:
		err = c.PostRecv(into, c.lastCookie, 0)
	}
	ok(t, err)
	c.outstanding[c.lastCookie] = op
}

// run transfers data until n operations have completed. The number of outstanding operations stays the same.
func (c *traffic) run(t *testing.T, n int) {
	t.Helper()
	for end := c.completed + n; c.completed < end; {
		ev := await(t, c.request, EventDTOCompletion)
		if ev.Status != DTOSuccess {
			t.Fatalf("%v ended with %v", ev.Op, ev.Status)
		}
		op := c.countCompletion(t, ev)
		c.post(t, op)
	}
}

// countCompletion counts the completion of an outstanding operation.
func (c *traffic) countCompletion(t *testing.T, ev Event) DTO {
	t.Helper()
	op, known := c.outstanding[ev.Cookie]
	if !known || op != ev.Op {
		t.Errorf("completion of %v %d, which is not outstanding", ev.Op, ev.Cookie)
	}
	delete(c.outstanding, ev.Cookie)
	c.completed++
	return op
}

// awaitBreak waits until the connection breaks, and then takes the completions. Each operation must have one
// completion. After a failed completion in a queue, no completion in that queue may be successful. It returns the time
// until the connection broke.
func (c *traffic) awaitBreak(t *testing.T) (after time.Duration) {
	t.Helper()
	start := time.Now()
	c.expect(EventBroken)
	after = time.Since(start)
	statuses := make(map[DTOStatus]int)
	for _, e := range []*EVD{c.recv, c.request} {
		var ev Event
		failed := false
		for e.Dequeue(&ev) == nil {
			op := c.countCompletion(t, ev)
			statuses[ev.Status]++
			switch {
			case ev.Status == DTOSuccess && (failed || op == DTOReceive):
				t.Errorf("%v succeeded after the failure", op)
			case ev.Status != DTOSuccess && ev.Status != DTOFlushed && ev.Status != DTOTransport:
				t.Errorf("%v ended with %v", op, ev.Status)
			}
			failed = failed || ev.Status != DTOSuccess
		}
	}
	if len(c.outstanding) > 0 {
		t.Errorf("operations without a completion: %v", c.outstanding)
	}
	if c.State() != EPDisconnected {
		t.Errorf("the endpoint is %v", c.State())
	}
	t.Logf("broken after %v, with %v", after, statuses)
	return after
}

// TestPeerKilled kills the peer process during transfers. All outstanding operations complete, and the connection
// breaks after GiveUp.
func TestPeerKilled(t *testing.T) {
	x := newXDP(t).(xdpNet)
	const giveUp = 800 * time.Millisecond
	h := newHost(t, x, 0, Options{Limits: Limits{GiveUp: giveUp}})
	peer := x.startPeer(t)
	c := x.newTraffic(t, h)
	c.run(t, 100)
	peer.kill()
	if after := c.awaitBreak(t); after > 2*giveUp {
		t.Errorf("broken after %v, with %v to give up", after, giveUp)
	}
	// The adapter continues to work, and connects to a new process with the same address.
	x.startPeer(t)
	x.newTraffic(t, h).run(t, 20)
}

// TestPeerRestarted kills the peer process during transfers and immediately starts another peer process with the same
// address. The new process does not know the connection and answers with a Reset, so the connection breaks long before
// GiveUp.
func TestPeerRestarted(t *testing.T) {
	x := newXDP(t).(xdpNet)
	const giveUp = patience
	h := newHost(t, x, 0, Options{Limits: Limits{GiveUp: giveUp}})
	peer := x.startPeer(t)
	c := x.newTraffic(t, h)
	c.run(t, 100)
	peer.kill()
	killed := time.Now()
	x.startPeer(t)
	t.Logf("restarted after %v", time.Since(killed))
	if after := c.awaitBreak(t); after > giveUp/10 {
		t.Errorf("broken %v after the restart, with %v to give up", after, giveUp)
	}
	x.newTraffic(t, h).run(t, 20)
}

// TestPeerLosesItsInterface takes the interface of one side down for a second during a transfer. When the interface is
// up again, the transfer continues and the data is correct.
func TestPeerLosesItsInterface(t *testing.T) {
	for _, side := range []lab.Side{lab.A, lab.B} {
		t.Run(side.String(), func(t *testing.T) {
			labtest.RequireXDP(t)
			x := xdpNet{labtest.New(t, lab.Options{})}
			a, b := newHosts(t, x, Options{Limits: Limits{GiveUp: 10 * time.Second}})
			const block, blocks = 256 << 10, 128
			from, to := a.pointWith(nil, block*blocks, blocks), b.pointWith(nil, block*blocks, blocks)
			join(from, to)
			fillRandom(from.mem, 1)
			for i := range blocks {
				ok(t, from.PostRDMAWrite(from.seg(i*block, block), uint64(i), to.lmr.Remote(i*block, block), 0))
			}
			var slowest time.Duration
			for i := range blocks {
				if i == blocks/4 {
					ok(t, x.SetUp(side, false))
					time.Sleep(time.Second)
					ok(t, x.SetUp(side, true))
				}
				start := time.Now()
				from.done(from.request, uint64(i), DTORDMAWrite, DTOSuccess, block)
				slowest = max(slowest, time.Since(start))
			}
			t.Logf("the longest wait for a write, once the interface was up: %v", slowest)
			if !bytes.Equal(to.mem, from.mem) {
				t.Error("the bytes differ")
			}
			proves(from, to)
		})
	}
}

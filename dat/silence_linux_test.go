package dat

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
)

func init() { roles["crowd"] = beCrowd }

// crowdVar names an environment variable. Its value is the number of connections that a test makes to a server process,
// which the test then stops or kills. Each connection sends half a message per second.
const crowdVar = "DATXDP_CROWD"

func crowdSize() int {
	if n, err := strconv.Atoi(os.Getenv(crowdVar)); err == nil {
		return n
	}
	return 400
}

const crowdDepth = 4

func crowdAttr() *EPAttr {
	attr := DefaultEPAttr()
	attr.MaxRecvDTOs, attr.MaxRequestDTOs, attr.MaxRecvIOV, attr.MaxRequestIOV = crowdDepth, 4*crowdDepth, 1, 1
	attr.MaxRDMAReadIn, attr.MaxRDMAReadOut, attr.MaxRDMAReadIOV, attr.MaxRDMAWriteIOV = 1, 1, 1, 1
	return &attr
}

// beCrowd is the server process: it accepts connections and receives messages until it is killed.
func beCrowd() error {
	name, o := childOptions()
	ia, err := Open(name, o)
	if err != nil {
		return err
	}
	pz, err := ia.CreatePZ()
	if err != nil {
		return err
	}
	evd, err := ia.CreateEVD(1<<16, nil, EVDDTO|EVDConnection|EVDCR)
	if err != nil {
		return err
	}
	lmr, err := ia.CreateLMR(make([]byte, 64), pz, MemAll)
	if err != nil {
		return err
	}
	if _, err = ia.CreatePSP(testQual, evd, PSPConsumer); err != nil {
		return err
	}
	fmt.Println("listening")
	var eps []*EP
	for {
		var ev Event
		if _, err := evd.Wait(-1, 1, &ev); err != nil {
			return err
		}
		switch {
		case ev.Number == EventConnectionRequest:
			ep, err := ia.CreateEP(pz, EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd, Attr: crowdAttr()})
			if err != nil {
				return err
			}
			for range crowdDepth {
				if err := ep.PostRecv([]LMRTriplet{lmr.Segment(0, 64)}, uint64(len(eps)), 0); err != nil {
					return err
				}
			}
			eps = append(eps, ep)
			if err := ev.CR.Accept(ep, nil); err != nil {
				return err
			}
		case ev.Number == EventDTOCompletion && ev.Status == DTOSuccess:
			_ = eps[ev.Cookie].PostRecv([]LMRTriplet{lmr.Segment(0, 64)}, ev.Cookie, 0) // fails if the connection has just ended
		}
	}
}

// callers has the connections of the client's side.
type callers struct {
	*host
	events             *EVD
	eps                []*EP
	msg                []LMRTriplet
	sent, done, broken int
}

func newCallers(t *testing.T, h *host, to network) *callers {
	t.Helper()
	c := &callers{host: h, events: must(h.ia.CreateEVD(1<<16, nil, EVDDTO|EVDConnection))(t)}
	lmr := must(h.ia.CreateLMR(make([]byte, 64), h.pz, MemAll))(t)
	c.msg = []LMRTriplet{lmr.Segment(0, 64)}
	established := 0
	for size := crowdSize(); established < size; {
		for len(c.eps) < size && len(c.eps)-established < 128 {
			ep := must(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: c.events, RequestEVD: c.events, ConnectEVD: c.events, Attr: crowdAttr()}))(t)
			c.eps = append(c.eps, ep)
			ok(t, ep.Connect(to.addr(1), testQual, time.Minute, nil))
		}
		if ev := await(t, c.events, EventEstablished); ev.Number == EventEstablished {
			established++
		}
	}
	return c
}

// run sends for a time d, with half a message per second on each connection.
func (c *callers) run(t *testing.T, d time.Duration) {
	t.Helper()
	every := 2 * time.Second / time.Duration(len(c.eps))
	start, base := time.Now(), c.sent
	for time.Since(start) < d {
		for c.sent-base < int(time.Since(start)/every) {
			ep := c.eps[c.sent*151%len(c.eps)]
			if ep.PostSend(c.msg, 0, 0) != nil { // it has broken
				c.done++
			}
			c.sent++
		}
		c.reap(every)
	}
}

// reap takes one event. It returns false if no event arrives for a time d.
func (c *callers) reap(d time.Duration) bool {
	var ev Event
	if _, err := c.events.Wait(d, 1, &ev); err != nil {
		return false
	}
	switch ev.Number {
	case EventDTOCompletion:
		c.done++
	case EventBroken, EventDisconnected:
		c.broken++
	default:
	}
	return true
}

// TestKilledProcessIsToldEarly kills a process and then sends on one connection to it. All connections to the process
// must break long before GiveUp.
func TestKilledProcessIsToldEarly(t *testing.T) {
	u := newUDP(t).(udp)
	for _, tt := range []struct {
		name  string
		on    network
		start func() child
	}{
		{"udp", u, func() child {
			return startChild(t, "crowd", "udp:"+u.addr(1).String(), int(u.port), 0, func(f func() error) error { return f() })
		}},
		{"xdp", newXDP(t), func() child {
			return newXDP(t).(xdpNet).start(t, lab.B, "crowd", "xdp:"+lab.Interface, 0)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(crowdVar, "4")
			h := newHost(t, tt.on, 0, Options{})
			server := tt.start()
			if said := server.says(t); said != "listening" {
				t.Fatal(said)
			}
			c := newCallers(t, h, tt.on)
			c.run(t, 500*time.Millisecond)
			server.kill()
			start := time.Now()
			ok(t, c.eps[0].PostSend(c.msg, 0, 0))
			for c.broken < len(c.eps) && time.Since(start) < patience {
				c.reap(100 * time.Millisecond)
			}
			took := time.Since(start)
			t.Logf("%d connections told after %v", c.broken, took)
			if c.broken < len(c.eps) || took > 2*time.Second {
				t.Errorf("%d of %d connections told after %v", c.broken, len(c.eps), took)
			}
		})
	}
}

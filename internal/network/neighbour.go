package network

import (
	"fmt"
	"time"

	"github.com/datxdp/datxdp/internal/network/tcp"
	"github.com/datxdp/datxdp/internal/simlink"
)

// Bulk flows beside TCP on one port. The hosts are faster than the port, so that also a single TCP sender has its queue
// at the port.

const (
	neighbourRate = 25e9
	neighbourPort = 10e9
	neighbourSlow = 1e9
	// hostQueue is what a TCP sender keeps in its host, in packets.
	hostQueue = 128
)

// neighbourCase is an equal number of our flows and of TCP flows.
type neighbourCase struct {
	name    string
	control func() tcp.Control
	flows   int // of each kind
	rtt     time.Duration
	mtu     int
	slow    bool // a port of 1 Gb/s
	port    simlink.Switch
	warmUp  time.Duration
	run     time.Duration
}

func cubic() tcp.Control   { return &tcp.Cubic{} }
func newReno() tcp.Control { return tcp.NewReno{} }
func dctcp() tcp.Control   { return tcp.NewDCTCP() }

func neighbourCases() (all []Case) {
	for _, n := range []int{1, 4} {
		for _, buffer := range []int{128, 256, 512} {
			for _, c := range []neighbourCase{
				{name: "cubic", control: cubic, rtt: 100 * time.Microsecond, mtu: payload1500, warmUp: 300 * time.Millisecond, run: 500 * time.Millisecond},
				{name: "cubic", control: cubic, rtt: time.Millisecond, mtu: payload1500, warmUp: time.Second, run: 2 * time.Second},
				{name: "cubic", control: cubic, rtt: 10 * time.Millisecond, mtu: payload1500, slow: true, warmUp: 4 * time.Second, run: 12 * time.Second},
				// With packets of 1500 bytes CUBIC would need 18 s from one loss to the next.
				{name: "cubic", control: cubic, rtt: 10 * time.Millisecond, mtu: payload9000, warmUp: 4 * time.Second, run: 12 * time.Second},
				{name: "newreno", control: newReno, rtt: 100 * time.Microsecond, mtu: payload1500, warmUp: 300 * time.Millisecond, run: 500 * time.Millisecond},
			} {
				c.flows, c.port = n, simlink.Switch{Buffer: buffer << 10, Rate: neighbourPort}
				where := "10G"
				if c.slow {
					c.port.Rate, where = neighbourSlow, "1G"
				}
				all = append(all, c.of(fmt.Sprintf("%s-%v/%dK", where, c.rtt, buffer)))
			}
		}
		for _, mark := range []int{25, 100} {
			c := neighbourCase{name: "dctcp", control: dctcp, flows: n, rtt: 100 * time.Microsecond, mtu: payload1500,
				port:   simlink.Switch{Buffer: 1 << 20, Mark: mark << 10, Rate: neighbourPort},
				warmUp: 300 * time.Millisecond, run: 500 * time.Millisecond}
			all = append(all, c.of(fmt.Sprintf("10G-%v/K%dK", c.rtt, mark)))
		}
	}
	return all
}

func (c neighbourCase) of(where string) Case {
	return Case{Name: fmt.Sprintf("beside/%s/%s/%d+%d", c.name, where, c.flows, c.flows), Run: c.measure}
}

// measure returns the shares of the port of our flows together, and of the TCP flows.
func (c *neighbourCase) measure(seed uint64) []Metric {
	w := newWorld(Net{Rate: neighbourRate, RTT: c.rtt, MTU: c.mtu, Port: c.port, Hosts: make([]simlink.Host, c.flows+1)}, seed)
	sink := w.hosts[c.flows]
	flows := w.fan(c.flows, c.flows, load{size: 1 << 20, depth: 32})
	w.run(20 * c.rtt)
	w.startWithin(flows, 10*time.Millisecond)
	var theirs []*tcp.Receiver
	for range c.flows {
		theirs = append(theirs, w.addTCP(sink, c.control, w.now()+w.rng.Int64N(int64(10*time.Millisecond))))
	}
	w.run(c.warmUp)
	arrived := func() (n float64) {
		for _, r := range theirs {
			n += float64(r.Received())
		}
		return n
	}
	m, ours, segments := w.measure(flows), received(sink), arrived()
	w.run(c.run)
	rate := (received(sink) - ours) * 8 / m.seconds() / lineRate(c.port.Rate, c.mtu)
	segments = (arrived() - segments) * float64(c.mtu+wireOverhead) * 8 / m.seconds() / float64(c.port.Rate)
	p := w.net.Port(sink.link.Local())
	return []Metric{{"ours", rate}, {"tcp", segments}, {"again %", 100 * m.again()},
		{"drop %", 100 * float64(p.Drops) / float64(p.Packets+p.Drops)}, {"queue KB", p.MeanQueue / 1e3}}
}

// tcpSender and tcpReceiver are machines.
type (
	tcpSender struct {
		*tcp.Sender
		startAt int64
	}
	tcpReceiver struct{ *tcp.Receiver }
)

func (s tcpSender) turn(now int64) (next int64, packets int) {
	if now < s.startAt {
		return s.startAt, 0
	}
	return s.Turn(now)
}

func (r tcpReceiver) turn(now int64) (next int64, packets int) { return r.Turn(now) }

// addTCP adds a TCP sender, and its receiver behind the port of a host.
func (w *World) addTCP(beside *host, control func() tcp.Control, startAt int64) *tcp.Receiver {
	from := w.addLink(simlink.Host{Frames: hostQueue})
	c := control()
	_, ecn := c.(*tcp.DCTCP)
	s := tcpSender{startAt: startAt}
	sender := w.add(&s)
	to := w.addLink(simlink.Host{})
	w.net.SharePort(beside.link.Local(), to.Local())
	there, err := from.Resolve(to.Local(), 0)
	must(err)
	back, err := to.Resolve(from.Local(), 0)
	must(err)
	s.Sender = tcp.NewSender(from, there, from.Caps().MaxPayload, c)
	r := tcp.NewReceiver(to, back, ecn)
	w.add(tcpReceiver{r})
	w.wake(sender, startAt)
	return r
}

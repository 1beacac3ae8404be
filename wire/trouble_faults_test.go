//go:build !race

package wire

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// mishap is the beginning or the end of one kind of trouble. Its time counts from the dial until the trouble begins.
type mishap struct {
	at   int64
	what string
	run  func()
}

// longestTrouble is less than the silence that breaks a connection.
const longestTrouble = 8500 * time.Millisecond

// drawTrouble generates the faults of a scenario.
func (x *trouble) drawTrouble(cfg *simlink.Config) {
	r := x.r
	most := pick(r, 5*time.Millisecond, 50*time.Millisecond, 500*time.Millisecond, 3*time.Second, longestTrouble)
	final := cfg.Delay
	if chance(r, 4) { // the path ends with another delay than it began
		final = between(r, 2*time.Microsecond, time.Millisecond)
		x.setDelay(final) // for calibrate
		x.add(0, "delay "+fmt.Sprint(cfg.Delay), func() { x.setDelay(cfg.Delay) })
	}
	if cfg.MTU > 1472 && chance(r, 4) { // the MTU of the path grows
		x.setBoth(0, "MTU 1472", func(a, b netip.AddrPort) { x.net.SetMTU(a, b, 1472) })
	}
	kinds := []func(at, d int64){x.drawStop, x.drawStop, x.drawLoss, x.drawHole, x.drawFlood, x.drawReroute, x.drawHold}
	x.final = final
	end := int64(0)
	for range 1 + r.IntN(3) {
		at := int64(logUniform(r, time.Microsecond, most/2)) - 1000
		d := min(int64(logUniform(r, 100*time.Microsecond, most)), int64(most)-at)
		kinds[r.IntN(len(kinds))](at, d)
		end = max(end, at+d)
	}
	x.add(end, "the path is whole", func() { x.heal(final, cfg.MTU) })
}

// logUniform returns a random duration with an evenly distributed logarithm.
func logUniform(r *rand.Rand, low, high time.Duration) time.Duration {
	return time.Duration(float64(low) * math.Pow(float64(high)/float64(low), r.Float64()))
}

func (x *trouble) add(at int64, what string, run func()) {
	x.later = append(x.later, &mishap{at: at, what: what, run: run})
	x.planned += fmt.Sprintf("at %v: %s\n", time.Duration(at), what)
}

func (x *trouble) setBoth(at int64, what string, f func(a, b netip.AddrPort)) {
	x.add(at, what, func() {
		f(x.client.addr, x.server.addr)
		f(x.server.addr, x.client.addr)
	})
}

func (x *trouble) setDelay(d time.Duration) {
	x.net.SetDelay(x.client.addr, x.server.addr, d)
	x.net.SetDelay(x.server.addr, x.client.addr, d)
}

// heal makes the path whole.
func (x *trouble) heal(delay time.Duration, mtu int) {
	x.setDelay(delay)
	for _, d := range [][2]netip.AddrPort{{x.client.addr, x.server.addr}, {x.server.addr, x.client.addr}} {
		x.net.SetLoss(d[0], d[1], 0)
		x.net.SetMTU(d[0], d[1], mtu)
		x.net.SetHold(d[0], d[1], simlink.Hold{})
	}
}

// directions returns the directions of a fault: one of them, or both.
func (x *trouble) directions() [][2]netip.AddrPort {
	a, b := x.client.addr, x.server.addr
	return [][][2]netip.AddrPort{{{a, b}}, {{b, a}}, {{a, b}, {b, a}}}[x.r.IntN(3)]
}

// drawStop stops an end, as by SIGSTOP.
func (x *trouble) drawStop(at, d int64) {
	i := x.r.IntN(2)
	n := x.nodes[i]
	x.add(at, fmt.Sprintf("end %d is stopped", i), func() { x.stopped[n]++ })
	x.add(at+d, fmt.Sprintf("end %d continues", i), func() {
		if x.stopped[n]--; x.stopped[n] == 0 && int64(n.eng.Next()) <= x.now() {
			x.wake[n] = true
		}
	})
}

func (x *trouble) drawLoss(at, d int64) {
	p, dirs := pick(x.r, 0.1, 0.5, 0.9, 1, 1), x.directions()
	set := func(p float64) func() {
		return func() {
			for _, d := range dirs {
				x.net.SetLoss(d[0], d[1], p)
			}
		}
	}
	x.add(at, fmt.Sprintf("loss of %.1f in %d directions", p, len(dirs)), set(p))
	x.add(at+d, "no loss", set(0))
}

// drawHole makes a path drop packets beyond a size, until all trouble is over.
func (x *trouble) drawHole(at, _ int64) {
	size, dirs := 1200+x.r.IntN(300), x.directions()
	x.add(at, fmt.Sprintf("packets beyond %d bytes are dropped in %d directions", size, len(dirs)), func() {
		for _, d := range dirs {
			x.net.SetMTU(d[0], d[1], size)
		}
	})
}

func (x *trouble) drawReroute(at, _ int64) {
	d := between(x.r, 2*time.Microsecond, 20*time.Millisecond)
	x.add(at, fmt.Sprintf("delay %v", d), func() { x.setDelay(d) })
}

// drawHold makes packets overtake others.
func (x *trouble) drawHold(at, d int64) {
	h := simlink.Hold{Share: 0.1, Min: time.Microsecond, Max: between(x.r, 10*time.Microsecond, time.Millisecond)}
	x.setBoth(at, fmt.Sprintf("reordering %+v", h), func(a, b netip.AddrPort) { x.net.SetHold(a, b, h) })
	x.setBoth(at+d, "no reordering", func(a, b netip.AddrPort) { x.net.SetHold(a, b, simlink.Hold{}) })
}

// drawFlood makes the foe send Connects to the server, from its own address or from invented ones.
func (x *trouble) drawFlood(at, d int64) {
	invented, cookies := chance(x.r, 2), chance(x.r, 2) && x.keys == nil
	x.reused = chance(x.r, 2)
	count := pick(x.r, 50, 200, 600)
	d = min(d, int64(200*time.Millisecond))
	for i := range count {
		x.later = append(x.later, &mishap{at: at + d*int64(i)/int64(count), run: func() { x.flood(uint32(i), invented, cookies) }})
	}
	x.planned += fmt.Sprintf("at %v: %d Connects in %v, invented addresses %v, valid cookies %v, accepted %v\n",
		time.Duration(at), count, time.Duration(d), invented, cookies, x.reused)
}

// flood sends a Connect of the foe.
func (x *trouble) flood(i uint32, invented, cookie bool) {
	from := x.foe.addr
	if invented {
		from = netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, byte(i), byte(i >> 8), 1}), 17473)
	}
	x.guise.as = func() netip.AddrPort { return from }
	h := proto.Header{Type: proto.Connect, PSN: seq.Num(i)}
	hi := proto.Hello{CID: i | 1, Tag: i | 1, MTU: 1472, Window: minPeerWindow, Qual: service}
	if cookie {
		hi.Cookie = x.server.eng.makeCookie(&requestKey{from: from}, &h, &hi, x.now()/int64(cookieLife))
	}
	var b [1]link.Buf
	if x.foe.link.Alloc(b[:]) == 0 {
		return
	}
	path, err := x.foe.link.Resolve(x.server.addr, 0)
	if err != nil {
		x.fail("%v", err)
	}
	packet := packetOf(h, helloOf(&hi))
	b[0].Path, b[0].Data = path, b[0].Data[:copy(b[0].Data, packet)]
	x.foe.link.Send(b[:])
	x.foe.link.Release(path)
}

// drainFoe drops the packets to the foe.
func (x *trouble) drainFoe() {
	var b [64]link.Buf
	for n := x.foe.link.Recv(b[:]); n > 0; n = x.foe.link.Recv(b[:]) {
		x.foe.link.Free(b[:n])
	}
}

// happen runs the faults that are due.
func (x *trouble) happen() {
	for len(x.faults) > 0 && x.faults[0].at <= x.now() {
		f := x.faults[0]
		x.faults = x.faults[1:]
		f.run()
	}
}

// scheduleFaults puts the faults in order, and makes their times count from now.
func (x *trouble) scheduleFaults(wait time.Duration) {
	all := x.later
	slices.SortStableFunc(all, func(a, b *mishap) int { return int(min(max(a.at-b.at, -1), 1)) })
	for _, f := range all {
		f.at += x.now() + int64(wait)
	}
	x.faults = all
}

// connect begins the connection, and lets the trouble begin in the handshake, or after some exchanges.
func (x *trouble) connect() {
	quiet := pick(x.r, 0, 0, 1, 1, 2, 10)
	if quiet == 0 {
		x.scheduleFaults(0)
		x.dialServer()
		return
	}
	x.dialServer()
	x.runUntil("the connection", x.now()+int64(10*time.Second), x.connected)
	for range quiet - 1 {
		x.begin(x.drawOp())
		x.runUntil("an operation before the trouble", x.now()+int64(10*time.Second), func() bool { return x.op == nil })
	}
	x.scheduleFaults(pick(x.r, 0, time.Millisecond, time.Second))
}

// suffer makes operations until the trouble is over.
func (x *trouble) suffer() {
	for len(x.faults) > 0 {
		switch {
		case x.op != nil || !x.connected():
			x.advance(x.faults[len(x.faults)-1].at)
		case chance(x.r, 3):
			x.rest(min(between(x.r, 10*time.Microsecond, time.Second), time.Duration(x.faults[len(x.faults)-1].at-x.now())))
		case x.stopped[x.client] > 0:
			x.advance(x.faults[len(x.faults)-1].at)
		default:
			x.begin(x.drawOp())
		}
	}
}

package examples

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/udplink"
)

// smallBuffer is the largest receive buffer in bytes that kernels grant by default (net.core.rmem_max). They double it.
const smallBuffer = 212992

// pump is two adapters over kernel UDP on loopback, with packets of MTU 1500, and a connection between them.
type pump struct {
	from, to *dat.IA
	below    *udplink.Link // of to
	ep       *dat.EP
	evd      *dat.EVD
	src, dst *dat.LMR
}

const pumpSize = 1 << 20

// newPump opens the adapters. Their sockets have buffers of the given size.
func newPump(t testing.TB, buffer int) *pump {
	t.Helper()
	p := &pump{}
	open := func(addr string, below **udplink.Link) *dat.IA {
		o := dat.DefaultOptions()
		o.Port = 17491
		o.Wrap = func(l link.Link) link.Link { // another socket takes the place of the one that Open has opened
			at := l.Local()
			must(t, l.Close())
			small, err := udplink.Open(at.Addr(), udplink.Options{Port: at.Port(), MaxPayload: 1472, Buffer: buffer})
			must(t, err)
			*below = small
			return small
		}
		ia, err := dat.Open("udp:"+addr, o)
		must(t, err)
		t.Cleanup(func() { ia.Close() })
		return ia
	}
	var unused *udplink.Link
	p.from, p.to = open("127.0.0.31", &unused), open("127.0.0.32", &p.below)
	p.connect(t)
	return p
}

func (p *pump) connect(t testing.TB) {
	t.Helper()
	end := func(ia *dat.IA) (*dat.EVD, *dat.EP, *dat.LMR) {
		pz, err := ia.CreatePZ()
		must(t, err)
		evd, err := ia.CreateEVD(64, nil, dat.EVDDTO|dat.EVDConnection|dat.EVDCR)
		must(t, err)
		ep, err := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
		must(t, err)
		lmr, err := ia.CreateLMR(make([]byte, pumpSize), pz, dat.MemAll)
		must(t, err)
		return evd, ep, lmr
	}
	evd, ep, dst := end(p.to)
	p.evd, p.ep, p.src = end(p.from)
	p.dst = dst
	_, err := p.to.CreatePSP(7, evd, dat.PSPConsumer)
	must(t, err)
	must(t, p.ep.Connect(netip.MustParseAddr("127.0.0.32"), 7, 20*time.Second, nil))
	must(t, event(t, evd, dat.EventConnectionRequest).CR.Accept(ep, nil))
	event(t, p.evd, dat.EventEstablished)
	event(t, evd, dat.EventEstablished)
}

// write begins a write of 1 MiB.
func (p *pump) write(t testing.TB) {
	must(t, p.ep.PostRDMAWrite([]dat.LMRTriplet{p.src.Segment(0, pumpSize)}, 1, p.dst.Remote(0, pumpSize), 0))
}

// done waits until a write has completed.
func (p *pump) done(t testing.TB) { event(t, p.evd, dat.EventDTOCompletion) }

func event(t testing.TB, evd *dat.EVD, want dat.EventNumber) (ev dat.Event) {
	t.Helper()
	if _, err := evd.Wait(20*time.Second, 1, &ev); err != nil || ev.Number != want || want == dat.EventDTOCompletion && ev.Status != dat.DTOSuccess {
		t.Fatalf("%v %v, %v; want %v", ev.Number, ev.Status, err, want)
	}
	return ev
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A connection must not have more in flight than the receive buffer holds that kernels grant by default: the kernel drops
// nothing, although the receiving adapter shares its processor with others.
func TestSmallReceiveBuffer(t *testing.T) {
	p := newPump(t, smallBuffer)
	for range 4 {
		p.write(t)
	}
	for range 60 {
		p.done(t)
		p.write(t)
	}
	for range 4 {
		p.done(t)
	}
	if s := p.below.Stats(); s.RxDropped > 0 || s.RxBytes < 64*pumpSize {
		t.Errorf("%+v", s)
	}
}

// BenchmarkReceiveBuffer writes 1 MiB over loopback, with the buffer that kernels grant by default and with the one that
// the link asks for. docs/PERFORMANCE.md has the figures.
func BenchmarkReceiveBuffer(b *testing.B) {
	for _, bb := range []struct {
		name   string
		buffer int
	}{{"granted by default", smallBuffer}, {"asked for", 0}} {
		b.Run(bb.name, func(b *testing.B) {
			p := newPump(b, bb.buffer)
			b.SetBytes(pumpSize)
			b.ReportAllocs()
			out := 0
			for b.Loop() {
				if p.write(b); out == 7 {
					p.done(b)
				} else {
					out++
				}
			}
			for range out {
				p.done(b)
			}
			s := p.below.Stats()
			b.ReportMetric(float64(s.RxPackets)/float64(max(1, s.RxGroups)), "packets/group")
			b.ReportMetric(float64(p.below.Caps().RxWindow), "window")
			b.ReportMetric(float64(s.RxDropped), "dropped")
		})
	}
}

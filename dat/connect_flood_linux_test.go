package dat

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// labUDP is kernel UDP between the sides of a lab.
type labUDP struct{ xdpNet }

func (x labUDP) open(side int, o Options) (*IA, error) {
	return x.openAs(side, "udp:"+x.addr(side).String(), o)
}

// connectGroups floods a port of side B with groups of Connects from one socket of side A, as fast as the kernel takes
// them, until stop is closed.
func connectGroups(t testing.TB, l *lab.Lab, port uint16, stop <-chan struct{}) {
	const group, udpSegment = 60, 103 // UDP_SEGMENT of linux/udp.h
	var fd int
	ok(t, l.Do(lab.A, func() (err error) {
		fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
		return err
	}))
	defer func() { ok(t, syscall.Close(fd)) }()
	var packets []byte
	for i := range uint32(group) {
		packets = append(packets, connectPacket(i+1, nil, nil)...)
	}
	ok(t, syscall.SetsockoptInt(fd, syscall.IPPROTO_UDP, udpSegment, len(packets)/group))
	to := &syscall.SockaddrInet4{Port: int(port), Addr: lab.B.Addr4().As4()}
	for {
		select {
		case <-stop:
			return
		default:
			_ = syscall.Sendto(fd, packets, 0, to) // a closed port refuses
		}
	}
}

// rate returns the number of messages of 64 bytes per second to the peer in a phase.
func (p *point) rate() float64 {
	const window = 32
	b := p.host.t
	var ev Event
	n, began := 0, time.Now()
	for ; time.Since(began) < floodPhase; n += window {
		for range window {
			ok(b, p.peer.PostRecv(p.peer.seg(0, 64), 1, 0))
		}
		for range window {
			ok(b, p.PostSend(p.seg(64, 64), 2, CompletionSuppress))
		}
		for got := 0; got < window; {
			if p.peer.recv.Dequeue(&ev) == nil {
				got++
			}
			_ = p.request.Dequeue(&ev) // polls the sender; it has no event, because sends are suppressed
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

// The rate of messages of an established connection without a flood, beside a flood of Connects to a closed port, and
// beside the same flood to the adapter. The three take turns.
func BenchmarkConnectGroups(b *testing.B) {
	labtest.RequireXDP(b)
	for _, over := range []string{"udp", "xdp"} {
		b.Run(over, func(b *testing.B) {
			x := xdpNet{labtest.New(b, lab.Options{})}
			var n network = x
			if over == "udp" {
				n = labUDP{x}
			}
			client, server := newHosts(b, n, Options{})
			p, _ := pair(client, server, nil)
			beside := func(port uint16) float64 {
				stop := make(chan struct{})
				var flood sync.WaitGroup
				flood.Go(func() { connectGroups(b, x.Lab, port, stop) })
				defer func() { close(stop); flood.Wait() }()
				return p.rate()
			}
			var quiet, closed, open float64
			for b.Loop() {
				quiet += p.rate()
				closed += beside(DefaultPort + 1)
				open += beside(DefaultPort)
			}
			b.ReportMetric(quiet/float64(b.N), "quiet-msg/s")
			b.ReportMetric(closed/float64(b.N), "closed-port-msg/s")
			b.ReportMetric(open/float64(b.N), "flood-msg/s")
			b.ReportMetric(open/closed, "ratio")
		})
	}
}

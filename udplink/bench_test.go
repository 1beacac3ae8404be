package udplink

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/link"
)

func BenchmarkRoundTrip(b *testing.B) {
	for _, portable := range []bool{false, true} {
		b.Run(fmt.Sprintf("portable=%v", portable), func(b *testing.B) {
			o := Options{Port: freePort(b, host1, host2), portable: portable}
			x, y := mustOpen(b, host1, o), mustOpen(b, host2, o)
			p := mustResolve(b, x, y.Local())
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				echo(y, stop)
			}()
			bufs := make([]link.Buf, 8)
			b.ReportAllocs()
			for b.Loop() {
				send(b, x, p, "ping")
				for x.Recv(bufs) == 0 {
				}
				x.Free(bufs[:1])
			}
			close(stop)
			<-done
		})
	}
}

// echo spins and sends back every packet.
func echo(l *Link, stop chan struct{}) {
	bufs := make([]link.Buf, 64)
	for {
		n := l.Recv(bufs)
		for i := range bufs[:n] {
			bufs[i].Path = link.PathReply
		}
		if n > 0 {
			l.Send(bufs[:n])
			continue
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

func BenchmarkPackets(b *testing.B) {
	for _, portable := range []bool{false, true} {
		for _, size := range []int{64, 1400, 8900} {
			b.Run(fmt.Sprintf("portable=%v/%dB", portable, size), func(b *testing.B) {
				o := Options{Port: freePort(b, host1, host2), portable: portable}
				x, y := mustOpen(b, host1, o), mustOpen(b, host2, o)
				p := mustResolve(b, x, y.Local())
				bufs := make([]link.Buf, 16)
				b.SetBytes(int64(size * len(bufs)))
				packets := 0
				for b.Loop() {
					n := x.Alloc(bufs)
					for i := range bufs[:n] {
						bufs[i].Path, bufs[i].Data = p, bufs[i].Data[:size]
					}
					x.Send(bufs[:n])
					for got := 0; got < n; {
						k := y.Recv(bufs)
						y.Free(bufs[:k])
						got += k
					}
					packets += n
				}
				b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
			})
		}
	}
}

// BenchmarkSource measures a comparison of a packet's source with the expected address.
func BenchmarkSource(b *testing.B) {
	for _, portable := range []bool{false, true} {
		for name, host := range map[string]netip.Addr{"v4": host1, "v6": host6} {
			b.Run(fmt.Sprintf("portable=%v/%s", portable, name), func(b *testing.B) {
				u := mustOpen(b, host, Options{Port: freePort(b, host), portable: portable})
				send(b, u, mustResolve(b, u, u.Local()), "one")
				bufs := receive(b, u, make([]link.Buf, 1))
				var l link.Link = u
				b.ReportAllocs()
				for b.Loop() {
					if l.Source(&bufs[0]).Addr() != host {
						b.Fatal("another source")
					}
				}
				u.Free(bufs)
			})
		}
	}
}

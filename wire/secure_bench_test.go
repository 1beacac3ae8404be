package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// The time of a server for one connection in secure mode: from the Connect without a cookie to the established connection,
// with all computations, and to its end. The time of the requester is not counted.
func BenchmarkSecureAccept(b *testing.B) {
	for _, psk := range []bool{false, true} {
		b.Run(map[bool]string{false: "IK", true: "NNpsk0"}[psk], func(b *testing.B) {
			cfg := simlink.Config{Delay: 5 * time.Microsecond}
			if psk {
				cfg.Seed = 2
			}
			w := newSecureWorld(b, cfg, Limits{}, usual, 2)
			w.noise.model = nil
			client, server := w.nodes[0], w.nodes[1]
			client.host.newCipher, server.host.newCipher = nil, nil
			if err := server.host.Listen(service, server); err != nil {
				b.Fatal(err)
			}
			var spent time.Duration
			timed := func(f func()) {
				began := time.Now()
				f()
				spent += time.Since(began)
			}
			ca, cb := client.host.NewConn(plain), server.host.NewConn(plain)
			step := func() {
				now := Time(w.net.Now())
				client.eng.Poll(now)
				timed(func() { server.eng.Poll(now) })
				w.net.Advance(w.net.Now() + int64(cfg.Delay))
			}
			for b.Loop() {
				w.dial(client, server, ca, nil)
				for cb.State() != Established || ca.State() != Established {
					if step(); len(server.arrived) > 0 {
						timed(func() { w.accept(server, cb, nil) })
					}
				}
				if err := client.eng.Disconnect(ca, false); err != nil {
					b.Fatal(err)
				}
				for server.eng.Connections() > 0 || client.eng.Connections() > 0 {
					step()
				}
				for _, n := range w.nodes {
					for n.connect.Pop(new(Completion)) {
					}
				}
				if err := client.eng.Reset(ca); err != nil {
					b.Fatal(err)
				}
				if err := server.eng.Reset(cb); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/spent.Seconds(), "accepts/s")
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "server-µs")
		})
	}
}

package dat

import (
	"fmt"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// BenchmarkQueues sends 64-byte messages over 16 connections between adapters with several queues, on a multi-queue
// veth. It also reports the fraction of the packets that each queue sent. More queues do not help if the host has no
// cores for them.
func BenchmarkQueues(b *testing.B) {
	for _, queues := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(queues), func(b *testing.B) {
			n := xdpNet{labtest.New(b, lab.Options{Queues: queues})}
			for b.Loop() {
				f := newFleetOn(b, n, 64)
				f.grow(16)
				f.measureSends(16, 100*time.Millisecond) // let the congestion windows grow
				before := f.sentBy(0)
				b.ReportMetric(f.measureSends(16, 500*time.Millisecond)/1e6, "M/s")
				all, after := uint64(0), f.sentBy(0)
				for q := range after {
					after[q] -= before[q]
					all += after[q]
				}
				for q, sent := range after {
					b.ReportMetric(100*float64(sent)/float64(all), fmt.Sprintf("%%-of-queue-%d", q))
				}
				f.end()
			}
		})
	}
}

// sentBy returns the number of packets that each queue of a side has sent.
func (f *fleet) sentBy(side int) []uint64 {
	var sent []uint64
	for _, d := range f.hosts[side].ia.a.drivers {
		d.Own()
		sent = append(sent, d.eng.Stats().TxPackets)
		d.Disown()
	}
	return sent
}

package xdp

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/link"
)

// spinner calls f in a loop on a locked thread until stop is called. f must not block.
func spinner(b *testing.B, f func()) (stop func()) {
	var quit atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for !quit.Load() {
			f()
		}
	})
	return func() {
		quit.Store(true)
		wg.Wait()
	}
}

// verbs are the two ways to move packets: with link.Link methods, or with whole frames.
type verbs struct {
	recv func([]link.Buf) int
	send func([]link.Buf)
	raw  bool
}

func linkVerbs(s *Socket) verbs { return verbs{recv: s.Recv, send: s.Send} }
func rawVerbs(s *Socket) verbs  { return verbs{recv: s.RecvFrames, send: s.SendFrames, raw: true} }

var verbKinds = []struct {
	name string
	of   func(*Socket) verbs
}{{"raw", rawVerbs}, {"link", linkVerbs}}

// BenchmarkRoundTrip measures round trips of a 64-byte packet. Both ends spin.
func BenchmarkRoundTrip(b *testing.B) {
	for _, kind := range verbKinds {
		b.Run(kind.name, func(b *testing.B) {
			p := newPair(b, pairOptions{})
			near, far := p.ends[lab.A], p.ends[lab.B]
			to := p.path(b, lab.A)
			nv, fv := kind.of(near), kind.of(far)
			in := make([]link.Buf, 32)
			defer spinner(b, func() {
				n := fv.recv(in)
				if n > 0 {
					fv.send(in[:n])
				}
			})()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			bufs := make([]link.Buf, 32)
			samples := make([]time.Duration, 0, 1<<20)
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				for near.Alloc(bufs[:1]) == 0 {
				}
				bufs[0].Data = bufs[0].Data[:64]
				if kind.name == "raw" {
					copy(bufs[0].Data, rawHeader[:])
				}
				bufs[0].Path = to
				nv.send(bufs[:1])
				for spins := 0; ; spins++ {
					if n := nv.recv(bufs); n > 0 {
						near.Free(bufs[:n])
						break
					}
					if spins > 1<<26 {
						b.Fatalf("no answer: near %+v %v stall %d, far %+v %v stall %d", near.Stats(), near.pool.count, near.stall.Load(), far.Stats(), far.pool.count, far.stall.Load())
					}
				}
				if len(samples) < cap(samples) {
					samples = append(samples, time.Since(start))
				}
			}
			slices.Sort(samples)
			b.ReportMetric(float64(samples[len(samples)/2])/1e3, "p50-us")
			b.ReportMetric(float64(samples[len(samples)*99/100])/1e3, "p99-us")
		})
	}
}

// rawHeader is an Ethernet header with the EtherType for local experiments.
var rawHeader = [14]byte{2, 0x73, 0, 0, 0, 2, 2, 0x73, 0, 0, 0, 1, 0x88, 0xb5}

// BenchmarkStream measures one-way throughput with 64-byte and full-size packets. Both ends poll without sleeping. The
// benchmark counts the packets that the receiver gets.
func BenchmarkStream(b *testing.B) {
	for _, kind := range verbKinds {
		for _, tc := range []struct{ mtu, size, batch int }{{1500, 64, 32}, {1500, 1472, 32}, {9000, 8972, 16}, {65000, 64972, 4}} {
			b.Run(fmt.Sprintf("%s/mtu=%d/size=%d", kind.name, tc.mtu, tc.size), func(b *testing.B) {
				stream(b, kind.of, tc.mtu, tc.size, tc.batch)
			})
		}
	}
}

func stream(b *testing.B, of func(*Socket) verbs, mtu, size, batch int) {
	p := newPair(b, pairOptions{mtu: mtu})
	near, far := p.ends[lab.A], p.ends[lab.B]
	to := p.path(b, lab.A)
	nv, fv := of(near), of(far)
	var packets, bytes atomic.Int64
	in := make([]link.Buf, 256)
	stop := spinner(b, func() {
		n := fv.recv(in)
		if n == 0 {
			return
		}
		var pk, by int64
		for i := range in[:n] {
			by += int64(len(in[i].Data))
			if in[i].Flags&link.More == 0 {
				pk++
			}
		}
		packets.Add(pk)
		bytes.Add(by)
		far.Free(in[:n])
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	per := near.Caps().FrameSize
	k := (size + per - 1) / per
	bufs := make([]link.Buf, k*batch)
	b.ReportAllocs()
	start := time.Now()
	for b.Loop() {
		var n int
		for {
			n = near.Alloc(bufs)
			if n/k*k != n {
				near.Free(bufs[n/k*k : n])
				n = n / k * k
			}
			if n > 0 {
				break
			}
		}
		for i := 0; i < n; i += k {
			left := size
			for j := i; j < i+k; j++ {
				l := min(left, per)
				bufs[j].Data, bufs[j].Flags, bufs[j].Path = bufs[j].Data[:l], link.More, to
				left -= l
			}
			bufs[i+k-1].Flags = 0
			if nv.raw {
				copy(bufs[i].Data, rawHeader[:])
			}
		}
		nv.send(bufs[:n])
	}
	elapsed := time.Since(start).Seconds()
	got, gotBytes := packets.Load(), bytes.Load()
	stop()
	st := near.Stats()
	b.ReportMetric(float64(got)/elapsed/1e6, "Mpkt/s")
	b.ReportMetric(float64(gotBytes)*8/elapsed/1e9, "Gb/s")
	b.ReportMetric(float64(st.TxDropped)/float64(st.TxDropped+st.TxPackets)*100, "%drop")
	b.ReportMetric(float64(far.Stats().RxDropped), "rxdrop")
	b.ReportMetric(float64(st.TxKicks)/float64(b.N), "kicks/op")
}

// BenchmarkVerbs measures the cost of our own code per packet. The kernel is a fake that does nothing.
func BenchmarkVerbs(b *testing.B) {
	const batch = 32
	for _, kind := range verbKinds {
		b.Run("send/"+kind.name, func(b *testing.B) {
			k := newFake(b, 1500)
			s := k.s
			s.kick = func(bool) syscall.Errno { k.complete(); return 0 }
			to, err := s.Resolve(k.peer(), 1)
			if err != nil {
				b.Fatal(err)
			}
			v := kind.of(s)
			bufs := make([]link.Buf, batch)
			b.ReportAllocs()
			for b.Loop() {
				n := s.Alloc(bufs)
				for i := range bufs[:n] {
					bufs[i].Data, bufs[i].Path = bufs[i].Data[:64], to
				}
				v.send(bufs[:n])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/packet")
		})
		b.Run("recv/"+kind.name, func(b *testing.B) {
			k := newFake(b, 1500)
			v := kind.of(k.s)
			packet := packetFor(b, "10.0.0.2", "10.0.0.1", payloadOf(64))
			for f := range k.s.umem.frames() {
				copy(k.s.umem.bytes(f, rxHeadRoom, uint32(len(packet))), packet)
			}
			bufs := make([]link.Buf, batch)
			b.ReportAllocs()
			for b.Loop() {
				k.refresh(batch, uint32(len(packet)))
				n := v.recv(bufs)
				k.s.Free(bufs[:n])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/packet")
		})
	}
}

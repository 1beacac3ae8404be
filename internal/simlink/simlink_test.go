package simlink

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

func TestBothModesDeliverInOrder(t *testing.T) {
	for _, immediate := range []bool{false, true} {
		p := newPair(t, Config{Immediate: immediate})
		var want []string
		for i := range 100 {
			want = append(want, numbered(i))
			p.send([]byte(numbered(i)))
		}
		p.net.deliverAll()
		if got := receive(p.b); !slices.Equal(got, want) {
			t.Errorf("immediate %v: got %q", immediate, got)
		}
		if p.a.Outstanding() != 0 || p.b.Outstanding() != 0 {
			t.Errorf("outstanding: a %d, b %d, want 0", p.a.Outstanding(), p.b.Outstanding())
		}
		if tx, rx := p.a.Stats(), p.b.Stats(); tx.TxPackets != 100 || rx.RxPackets != 100 || tx.TxBytes != rx.RxBytes {
			t.Errorf("stats: sent %+v received %+v", tx, rx)
		}
	}
}

func TestDelayAndRate(t *testing.T) {
	p := newPair(t, Config{Delay: 10 * time.Microsecond, Rate: 1e9})
	payload := make([]byte, 1000-wireOverhead)
	p.send(payload)
	p.send(payload)
	for _, want := range []int64{18_000, 26_000} {
		at, ok := p.net.Next()
		if !ok || at != want {
			t.Fatalf("Next = %d, %v, want %d", at, ok, want)
		}
		p.net.Advance(at - 1)
		if got := receive(p.b); len(got) != 0 {
			t.Errorf("%d packets before %d ns", len(got), at)
		}
		p.net.Advance(at)
		if got := receive(p.b); len(got) != 1 || p.net.Now() != at {
			t.Errorf("%d packets at %d ns, want 1 at %d", len(got), p.net.Now(), at)
		}
	}
}

func TestQueueDropsMarksAndPushesBack(t *testing.T) {
	p := newPair(t, Config{Rate: 1e6, QueueFrames: 4, MarkFrames: 2, Frames: 6})
	for range 6 {
		p.send([]byte("x"))
	}
	if got := p.a.Stats(); got.TxDropped != 2 || got.TxPackets != 4 {
		t.Errorf("stats = %+v, want 4 sent, 2 dropped", got)
	}
	bufs := make([]link.Buf, 6)
	if n := p.a.Alloc(bufs); n != 2 {
		t.Errorf("Alloc = %d while 4 of 6 frames wait for the wire", n)
	}
	p.net.deliverAll()
	n := p.b.Recv(bufs)
	var marks []bool
	for _, b := range bufs[:n] {
		marks = append(marks, b.Flags&link.CE != 0)
	}
	if want := []bool{false, false, true, true}; !slices.Equal(marks, want) {
		t.Errorf("CE marks = %v, want %v", marks, want)
	}
}

func TestImpairments(t *testing.T) {
	const packets = 2000
	tests := []struct {
		name  string
		cfg   Config
		check func(got []string) bool
	}{
		{"loss", Config{Loss: 0.1}, func(got []string) bool { return len(got) > 1700 && len(got) < 1900 }},
		{"duplicate", Config{Duplicate: 0.1}, func(got []string) bool { return len(got) > 2100 && len(got) < 2300 }},
		{"reorder", Config{Reorder: 0.1}, func(got []string) bool { return len(got) == packets && !slices.IsSorted(got) }},
		{"corrupt", Config{Corrupt: 0.1}, func(got []string) bool { return len(got) == packets && damaged(got) > 100 && damaged(got) < 300 }},
	}
	for _, tt := range tests {
		for _, immediate := range []bool{false, true} {
			run := func(seed uint64) []string {
				cfg := tt.cfg
				cfg.Seed, cfg.Immediate, cfg.Frames = seed, immediate, 2*packets
				p := newPair(t, cfg)
				for i := range packets {
					p.send([]byte(numbered(i)))
					p.net.Advance(p.net.Now() + 1000)
				}
				p.net.deliverAll()
				return receive(p.b)
			}
			first, again, other := run(1), run(1), run(2)
			if !tt.check(first) {
				t.Errorf("%s immediate=%v: %d packets, %d damaged", tt.name, immediate, len(first), damaged(first))
			}
			if !slices.Equal(first, again) {
				t.Errorf("%s immediate=%v: one seed gave two runs", tt.name, immediate)
			}
			if slices.Equal(first, other) {
				t.Errorf("%s immediate=%v: two seeds gave one run", tt.name, immediate)
			}
		}
	}
}

func damaged(got []string) int {
	good := make(map[string]bool)
	for i := range 2000 {
		good[numbered(i)] = true
	}
	n := 0
	for _, s := range got {
		if !good[s] {
			n++
		}
	}
	return n
}

func TestPacketsAreCutAnew(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, immediate := range []bool{false, true} {
		for _, sizes := range [][2]int{{2048, 2048}, {1024, 700}, {700, 1024}, {256, 101}, {1500, 97}, {3000, 1}} {
			p := newPair(t, Config{
				MTU: 3000, FrameSize: sizes[0], RxFrameSize: sizes[1], Frames: 16384,
				Immediate: immediate, Reorder: 0.5, Seed: 7,
			})
			want := make(map[string]int)
			for range 5 {
				payload := make([]byte, rng.IntN(3001))
				for i := range payload {
					payload[i] = byte(rng.Uint32())
				}
				want[string(payload)]++
				p.send(payload)
			}
			p.net.deliverAll()
			for _, s := range receive(p.b) {
				want[s]--
			}
			for s, n := range want {
				if n != 0 {
					t.Errorf("immediate %v, frames %v: packet of %d bytes came %+d times too few", immediate, sizes, len(s), n)
				}
			}
		}
	}
}

func TestControls(t *testing.T) {
	p := newPair(t, Config{})
	passes := func(size int) bool {
		p.send(make([]byte, size))
		p.net.deliverAll()
		return len(receive(p.b)) == 1
	}
	p.net.SetMTU(addrA, addrB, 1000)
	if !passes(1000) || passes(1001) {
		t.Error("SetMTU is no black hole for larger packets only")
	}
	p.net.Partition(addrB, addrA, true)
	if passes(10) {
		t.Error("a packet crossed a partition")
	}
	p.net.Partition(addrA, addrB, false)
	if !passes(10) {
		t.Error("the partition did not heal")
	}
	p.net.SetLoss(addrA, addrB, 1)
	if passes(10) {
		t.Error("a packet survived loss 1")
	}
}

func TestRestartOnTheSameAddress(t *testing.T) {
	p := newPair(t, Config{Delay: time.Millisecond})
	p.send([]byte("in flight"))
	if err := p.b.Close(); err != nil {
		t.Fatal(err)
	}
	b := p.net.Link(addrB)
	p.net.deliverAll()
	if got := receive(b); !slices.Equal(got, []string{"in flight"}) {
		t.Errorf("the new link received %q", got)
	}
	if got := receive(p.b); len(got) != 0 {
		t.Errorf("the closed link received %q", got)
	}
	mustPanic(t, "two links on one address", func() { p.net.Link(addrB) })
}

func TestReplyAndSource(t *testing.T) {
	p := newPair(t, Config{})
	p.send([]byte("ping"))
	p.net.deliverAll()
	bufs := make([]link.Buf, 4)
	if n := p.b.Recv(bufs); n != 1 {
		t.Fatalf("Recv = %d", n)
	}
	if got := p.b.Source(&bufs[0]); got != addrA {
		t.Errorf("Source = %v, want %v", got, addrA)
	}
	bufs[0].Path = link.PathReply
	bufs[0].Data = append(bufs[0].Data[:1], "ong"...)
	p.b.Send(bufs[:1])
	p.net.deliverAll()
	if got := receive(p.a); !slices.Equal(got, []string{"pong"}) {
		t.Errorf("reply = %q", got)
	}
}

// A reply with a port goes to that port of the requesting address.
func TestReplyToAnotherPort(t *testing.T) {
	p := newPair(t, Config{})
	elsewhere := netip.AddrPortFrom(addrA.Addr(), addrA.Port()+1)
	other := p.net.Link(elsewhere)
	bufs := make([]link.Buf, 4)
	for port, want := range map[uint16][2]int{0: {1, 0}, addrA.Port(): {1, 0}, elsewhere.Port(): {0, 1}, 9: {0, 0}} {
		p.send([]byte("ping"))
		p.net.deliverAll()
		if n := p.b.Recv(bufs); n != 1 || bufs[0].Port != 0 {
			t.Fatalf("Recv = %d, port %d", n, bufs[0].Port)
		}
		bufs[0].Path, bufs[0].Port = link.PathReply, port
		p.b.Send(bufs[:1])
		p.net.deliverAll()
		if got := [2]int{len(receive(p.a)), len(receive(other))}; got != want {
			t.Errorf("port %d: %d answers at each link, want %d", port, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	p := newPair(t, Config{})
	if _, err := p.a.Resolve(netip.MustParseAddrPort("[::1]:1"), 0); !errors.Is(err, link.ErrUnreachable) {
		t.Errorf("other family: %v", err)
	}
	p.a.Release(p.ab)
	p.send([]byte("lost"))
	if got := p.a.Stats(); got.TxDropped != 1 {
		t.Errorf("on a released path: %+v, want one drop", got)
	}
	again, err := p.a.Resolve(addrB, 0)
	if err != nil || again == link.PathReply {
		t.Errorf("Resolve = %v, %v", again, err)
	}
	if got := p.a.Paths(); got != 1 {
		t.Errorf("%d paths in use, want 1", got)
	}
	mustPanic(t, "release twice", func() { p.a.Release(again); p.a.Release(again) })
}

func TestOwnershipBugsPanic(t *testing.T) {
	tests := []struct {
		name string
		run  func(p *pair, b []link.Buf)
	}{
		{"double free", func(p *pair, b []link.Buf) { p.a.Free(b); p.a.Free(b) }},
		{"send after free", func(p *pair, b []link.Buf) { p.a.Free(b); p.a.Send(b) }},
		{"send twice", func(p *pair, b []link.Buf) { p.a.Send(b); p.a.Send(b) }},
		{"frame of nobody", func(p *pair, b []link.Buf) { b[0].Frame += 1 << 20; p.a.Free(b) }},
		{"data elsewhere", func(p *pair, b []link.Buf) { b[0].Data = make([]byte, 5); p.a.Send(b) }},
		{"write after send", func(p *pair, b []link.Buf) { p.a.Send(b); b[0].Data[3] = 1; p.a.Alloc(b) }},
		{"reply without request", func(p *pair, b []link.Buf) { b[0].Path = link.PathReply; p.a.Send(b) }},
		{"packet not complete", func(p *pair, b []link.Buf) { b[0].Flags = link.More; p.a.Send(b) }},
		{"too few bufs", func(p *pair, b []link.Buf) { p.a.Recv(nil) }},
	}
	for _, tt := range tests {
		p := newPair(t, Config{Immediate: true})
		b := make([]link.Buf, 1)
		p.a.Alloc(b)
		b[0].Path = p.ab
		b[0].Data = b[0].Data[:100]
		mustPanic(t, tt.name, func() { tt.run(p, b) })
	}
}

func TestReceiverWithoutFramesDrops(t *testing.T) {
	p := newPair(t, Config{Immediate: true, Frames: 4})
	for range 6 {
		p.send(bytes.Repeat([]byte{1}, 10))
	}
	if got := p.b.Stats(); got.RxDropped != 2 {
		t.Errorf("stats = %+v, want 2 dropped", got)
	}
	bufs := make([]link.Buf, 4)
	if n := p.b.Recv(bufs); n != 4 || p.b.Outstanding() != 4 {
		t.Errorf("Recv = %d, outstanding %d, want 4 and 4", n, p.b.Outstanding())
	}
}

func TestConfigFaultsPanic(t *testing.T) {
	for _, cfg := range []Config{
		{MTU: -1}, {Frames: 1, MTU: 9000}, {Segments: 1, RxFrameSize: 100},
		{Immediate: true, Delay: 1}, {Immediate: true, Rate: 1}, {Immediate: true, Hold: Hold{Share: 1}},
		{Switch: Switch{Buffer: 1}}, {Immediate: true, Switch: Switch{Buffer: 1, Rate: 1}}, {Hold: Hold{Min: 1}},
	} {
		mustPanic(t, "bad configuration", func() { New(cfg) })
	}
}

package tap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
)

var (
	_ link.Link = (*Impaired)(nil)
	_ link.Link = (*Capture)(nil)

	addrA = netip.MustParseAddrPort("10.0.0.1:17473")
	addrB = netip.MustParseAddrPort("10.0.0.2:17473")
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Rates
		err  string
	}{
		{"", Rates{}, ""},
		{"loss=1%,dup=0.1%,reorder=1%,corrupt=0.01%", Rates{Loss: 0.01, Duplicate: 0.001, Reorder: 0.01, Corrupt: 0.0001}, ""},
		{" loss=0.5 , seed=7,", Rates{Loss: 0.5, Seed: 7}, ""},
		{"loss=100%", Rates{Loss: 1}, ""},
		{"loss", Rates{}, "key=value"},
		{"lost=1%", Rates{}, "unknown impairment"},
		{"loss=1%,loss=2%", Rates{}, "twice"},
		{"loss=101%", Rates{}, "0% to 100%"},
		{"loss=-1%", Rates{}, "0% to 100%"},
		{"loss=NaN", Rates{}, "0% to 100%"},
		{"loss=", Rates{}, "0% to 100%"},
		{"seed=-1", Rates{}, "whole number"},
	} {
		got, err := Parse(tt.in)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("Parse(%q) = %+v, %v, want %+v, %q", tt.in, got, err, tt.want, tt.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("loss=1%,dup=0.1%,reorder=1%,corrupt=0.01%,seed=1")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%q became %+v, then %q became %+v, %v", s, r, r.String(), again, err)
		}
	})
}

// rig is a sender and a tapped receiver. A packet has up to three received frames.
type rig struct {
	t    *testing.T
	net  *simlink.Net
	a, b *simlink.Link
	top  link.Link
	ab   link.Path
}

func newRig(t *testing.T, wrap func(link.Link) link.Link) *rig {
	t.Helper()
	n := simlink.New(simlink.Config{Immediate: true, RxFrameSize: 500, Frames: 4096})
	r := &rig{t: t, net: n, a: n.Link(addrA), b: n.Link(addrB)}
	r.top = wrap(r.b)
	var err error
	if r.ab, err = r.a.Resolve(addrB, 0); err != nil {
		t.Fatal(err)
	}
	return r
}

// content returns packet i: its number, repeated. Each packet has another length.
func content(i int) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint32(nil, uint32(i)), 1+i%350)
}

func (r *rig) send(i int) {
	bufs := make([]link.Buf, 1)
	if r.a.Alloc(bufs) != 1 {
		r.t.Fatal("no frame")
	}
	bufs[0].Data = bufs[0].Data[:copy(bufs[0].Data, content(i))]
	bufs[0].Path = r.ab
	r.a.Send(bufs)
}

// receive receives and frees all packets, including delayed ones.
func (r *rig) receive() [][]byte {
	r.t.Helper()
	var got [][]byte
	var pkt []byte
	bufs := make([]link.Buf, 8)
	for empty := 0; empty <= maxIdleRecvs+1; empty++ {
		n := r.top.Recv(bufs)
		if n > 0 {
			empty = 0
		}
		for i := range bufs[:n] {
			if from := r.top.Source(&bufs[i]); from != addrA {
				r.t.Errorf("Source = %v", from)
			}
			pkt = append(pkt, bufs[i].Data...)
			if bufs[i].Flags&link.More == 0 {
				got, pkt = append(got, pkt), nil
			}
		}
		r.top.Free(bufs[:n])
		r.top.Wait(0)
	}
	if len(pkt) > 0 {
		r.t.Error("the last packet is not complete")
	}
	return got
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.top.Close(); err != nil {
		r.t.Error(err)
	}
	if n := r.b.Outstanding(); n != 0 {
		r.t.Errorf("%d frames kept by the tap", n)
	}
}

func TestImpairments(t *testing.T) {
	const packets = 3000
	for _, tt := range []struct {
		rates Rates
		count func(Counts) uint64
		want  func(got int, c Counts) bool
	}{
		{Rates{Seed: 1}, func(Counts) uint64 { return 300 }, func(got int, _ Counts) bool { return got == packets }},
		{Rates{Seed: 1, Loss: 0.1}, func(c Counts) uint64 { return c.Dropped },
			func(got int, c Counts) bool { return got == packets-int(c.Dropped) }},
		{Rates{Seed: 1, Duplicate: 0.1}, func(c Counts) uint64 { return c.Duplicated },
			func(got int, c Counts) bool { return got == packets+int(c.Duplicated) }},
		{Rates{Seed: 1, Reorder: 0.1}, func(c Counts) uint64 { return c.Reordered },
			func(got int, _ Counts) bool { return got == packets }},
		{Rates{Seed: 1, Corrupt: 0.1}, func(c Counts) uint64 { return c.Corrupted },
			func(got int, _ Counts) bool { return got == packets }},
		{Rates{Seed: 1, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1}, func(c Counts) uint64 { return c.Corrupted },
			func(got int, c Counts) bool { return got == packets-int(c.Dropped)+int(c.Duplicated) }},
	} {
		t.Run(tt.rates.String(), func(t *testing.T) {
			run := func() ([][]byte, Counts) {
				var tap *Impaired
				r := newRig(t, func(l link.Link) link.Link { tap = Impair(l, tt.rates); return tap })
				var got [][]byte
				for i := range packets {
					r.send(i)
					if i%50 == 49 {
						got = append(got, r.receive()...)
					}
				}
				r.close()
				return got, tap.Counts()
			}
			got, c := run()
			if n := tt.count(c); n < 200 || n > 400 || c.Packets != packets {
				t.Errorf("counts %+v, want about 300", c)
			}
			if !tt.want(len(got), c) {
				t.Errorf("%d packets, counts %+v", len(got), c)
			}
			checkContents(t, got, c)
			again, _ := run()
			if !slices.EqualFunc(got, again, bytes.Equal) {
				t.Error("one seed gave two runs")
			}
		})
	}
}

// checkContents compares the received packets with the counts of impairments.
func checkContents(t *testing.T, got [][]byte, c Counts) {
	t.Helper()
	damaged, late, last := 0, 0, -1
	for _, p := range got {
		i := int(binary.BigEndian.Uint32(p))
		if !bytes.Equal(p, content(i)) {
			damaged++
			continue
		}
		if i < last {
			late++
		}
		last = max(last, i)
	}
	if damaged > int(c.Corrupted) || c.Corrupted > 0 && damaged == 0 {
		t.Errorf("%d packets damaged, %d corrupted", damaged, c.Corrupted)
	}
	if moved := c.Reordered + c.Duplicated; late > int(moved)+maxLate || moved > 0 && late == 0 {
		t.Errorf("%d packets late, %d held up or repeated", late, moved)
	}
}

func TestReplyCancelsTheDuplicate(t *testing.T) {
	var tap *Impaired
	r := newRig(t, func(l link.Link) link.Link { tap = Impair(l, Rates{Duplicate: 1}); return tap })
	r.send(300) // three frames
	bufs := make([]link.Buf, 8)
	n := r.top.Recv(bufs)
	if n != 3 {
		t.Fatalf("Recv = %d, want 3", n)
	}
	r.top.Free(bufs[1:n])
	bufs[0].Path, bufs[0].Flags = link.PathReply, 0
	r.top.Send(bufs[:1])
	if got := r.receive(); len(got) != 0 || tap.Counts().Duplicated != 0 {
		t.Errorf("%d packets came again, counts %+v", len(got), tap.Counts())
	}
	r.close()
}

func TestCloseFreesWhatIsHeld(t *testing.T) {
	r := newRig(t, func(l link.Link) link.Link { return Impair(l, Rates{Reorder: 0.5, Duplicate: 0.5}) })
	for i := range 40 {
		r.send(i)
	}
	bufs := make([]link.Buf, 3)
	r.top.Free(bufs[:r.top.Recv(bufs)])
	r.close()
}

func TestDoubleFreeStaysLoud(t *testing.T) {
	r := newRig(t, func(l link.Link) link.Link { return Impair(l, Rates{Duplicate: 0.5, Seed: 3}) })
	r.send(1)
	bufs := make([]link.Buf, 3)
	n := r.top.Recv(bufs)
	r.top.Free(bufs[:n])
	again := slices.Clone(bufs[:n])
	r.receive()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	r.top.Free(again)
}

func TestNothingIsAllocated(t *testing.T) {
	r := newRig(t, func(l link.Link) link.Link {
		return Impair(l, Rates{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1})
	})
	bufs := make([]link.Buf, 16)
	cycle := func() {
		n := r.a.Alloc(bufs)
		for i := range bufs[:n] {
			bufs[i].Path, bufs[i].Data = r.ab, bufs[i].Data[:1000]
		}
		r.a.Send(bufs[:n])
		for range 4 {
			r.top.Free(bufs[:r.top.Recv(bufs)])
		}
	}
	for range 500 { // lets the slices reach their final capacity
		cycle()
	}
	if got := testing.AllocsPerRun(500, cycle); got != 0 {
		t.Errorf("%v allocations per batch, want 0", got)
	}
}

func TestCapture(t *testing.T) {
	for _, addrs := range [][2]netip.AddrPort{
		{addrA, addrB},
		{netip.MustParseAddrPort("[fd00::1]:1"), netip.MustParseAddrPort("[fd00::2]:2")},
	} {
		var file bytes.Buffer
		pcap, err := NewPcap(&file)
		if err != nil {
			t.Fatal(err)
		}
		n := simlink.New(simlink.Config{Immediate: true, RxFrameSize: 10})
		a, b := pcap.Tap(n.Link(addrs[0])), n.Link(addrs[1])
		p, err := a.Resolve(addrs[1], 0)
		if err != nil {
			t.Fatal(err)
		}
		bufs := make([]link.Buf, 200)
		a.Alloc(bufs[:1])
		bufs[0].Data, bufs[0].Path = bufs[0].Data[:copy(bufs[0].Data, "a question of some length")], p
		a.Send(bufs[:1])
		k := b.Recv(bufs)
		bufs[0].Path = link.PathReply
		b.Send(bufs[:k])
		a.Free(bufs[:a.Recv(bufs)])
		a.Release(p)
		if err := pcap.Flush(); err != nil {
			t.Fatal(err)
		}
		checkFile(t, file.Bytes(), addrs)
	}
}

// The capture of a reply has the port to which the reply goes.
func TestCaptureOfAnAnswer(t *testing.T) {
	pcap, err := NewPcap(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(l link.Link) link.Link { return pcap.Tap(l) })
	r.send(1)
	bufs := make([]link.Buf, 8)
	n := r.top.Recv(bufs)
	bufs[0].Path = link.PathReply
	from := r.top.Source(&bufs[0])
	for port, want := range map[uint16]netip.AddrPort{0: from, 9: netip.AddrPortFrom(from.Addr(), 9)} {
		bufs[0].Port = port
		if got := r.top.(*Capture).destination(&bufs[0]); got != want {
			t.Errorf("port %d: to %v, want %v", port, got, want)
		}
	}
	r.top.Free(bufs[:n])
	r.close()
}

// checkFile parses the blocks and decodes both packets.
func checkFile(t *testing.T, file []byte, addrs [2]netip.AddrPort) {
	t.Helper()
	var kinds []uint32
	var got []string
	for len(file) > 0 {
		kind, size := order.Uint32(file), order.Uint32(file[4:])
		if size%4 != 0 || order.Uint32(file[size-4:]) != size {
			t.Fatalf("block %d: length %d is not repeated", kind, size)
		}
		kinds = append(kinds, kind)
		if kind == blockPacket {
			frame := file[28 : 28+order.Uint32(file[20:])]
			got = append(got, describe(t, frame))
		}
		file = file[size:]
	}
	if want := []uint32{blockSection, blockInterface, blockPacket, blockPacket}; !slices.Equal(kinds, want) {
		t.Errorf("blocks %x, want %x", kinds, want)
	}
	want := []string{
		fmt.Sprintf("%v > %v: a question of some length", addrs[0], addrs[1]),
		fmt.Sprintf("%v > %v: a question of some length", addrs[1], addrs[0]),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func describe(t *testing.T, frame []byte) string {
	t.Helper()
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatal(e.Error())
	}
	u := p.TransportLayer().(*layers.UDP)
	from, _ := netip.AddrFromSlice(p.NetworkLayer().NetworkFlow().Src().Raw())
	to, _ := netip.AddrFromSlice(p.NetworkLayer().NetworkFlow().Dst().Raw())
	return fmt.Sprintf("%v > %v: %s", netip.AddrPortFrom(from, uint16(u.SrcPort)),
		netip.AddrPortFrom(to, uint16(u.DstPort)), u.Payload)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrorIsTold(t *testing.T) {
	pcap, err := NewPcap(fullDisk{})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		pcap.write(&record{from: addrA, to: addrB, payload: make([]byte, 1000)})
	}
	if err := pcap.Flush(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("Flush = %v", err)
	}
}

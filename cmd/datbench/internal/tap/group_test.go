package tap

import (
	"bytes"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
)

// Packets that arrive in groups are impaired one by one. A lost packet is one packet of its group, a corrupted one has one
// wrong bit and its neighbours none, and a duplicate is one packet more. No block of the link below stays occupied.
func TestImpairedGroups(t *testing.T) {
	for _, rates := range []Rates{{Loss: 0.02}, {Corrupt: 0.02}, {Duplicate: 0.02}, {Loss: 0.02, Duplicate: 0.02, Reorder: 0.02, Corrupt: 0.02}} {
		const groups, packets, size = 50, 40, 1000
		n := simlink.New(simlink.Config{Immediate: true, Group: 65_000, Blocks: 2})
		a, b := n.Link(addrA), n.Link(addrB)
		to, err := a.Resolve(addrB, 0)
		if err != nil {
			t.Fatal(err)
		}
		rates.Seed = 3
		top := Impair(b, rates)
		var got [groups * packets]int
		damaged, bufs := 0, make([]link.Buf, 16)
		receive := func() bool {
			k := top.Recv(bufs)
			for i := range bufs[:k] {
				at, wrong := decode(bufs[i].Data, size)
				if wrong {
					damaged++
				} else {
					got[at]++
				}
			}
			top.Free(bufs[:k])
			return k > 0
		}
		for g := range groups {
			var out [packets]link.Buf
			if a.Alloc(out[:]) != packets {
				t.Fatal("no frames")
			}
			for i := range out {
				psn := g*packets + i
				out[i].Data, out[i].Path = out[i].Data[:copy(out[i].Data, bytes.Repeat([]byte{byte(psn >> 8), byte(psn)}, size/2))], to
			}
			a.Send(out[:])
			for receive() {
			}
		}
		for range 2 * maxIdleRecvs { // delayed packets
			receive()
		}
		lost, twice := 0, 0
		for _, times := range got {
			lost += max(1-times, 0)
			twice += max(times-1, 0)
		}
		c := top.Counts()
		if c.Packets != groups*packets || c.Dropped+c.Duplicated+c.Corrupted == 0 || b.Stats().RxGroups < groups {
			t.Errorf("%+v: %+v, %d groups", rates, c, b.Stats().RxGroups)
		}
		if rates.Reorder == 0 && (lost != int(c.Dropped+c.Corrupted) || twice != int(c.Duplicated) || damaged != int(c.Corrupted)) {
			t.Errorf("%+v: %d packets lost, %d twice, %d damaged; counted %+v", rates, lost, twice, damaged, c)
		}
		if err := top.Close(); err != nil || b.Outstanding() != 0 {
			t.Errorf("%+v: %d frames outstanding, %v", rates, b.Outstanding(), err)
		}
	}
}

// decode returns the number of a packet, and whether the packet is damaged.
func decode(data []byte, size int) (psn int, wrong bool) {
	if len(data) != size {
		return 0, true
	}
	return int(data[0])<<8 | int(data[1]), !bytes.Equal(data, bytes.Repeat(data[:2], size/2))
}

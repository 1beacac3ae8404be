package dat

import (
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/link"
)

// Offsets of a packet that docs/WIRE.md has.
const (
	wireCID, wirePSN, wireAck, wireTag = 4, 8, 12, 28
	wireHeader, wireTrailer            = 32, 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// forger is a link that sends forged packets between the full packets of its engine. They have the same size and path,
// so they travel in the same group.
type forger struct {
	link.Link
	full int // payload of a full packet in bytes
	sent *atomic.Int64
}

func (f forger) Send(bufs []link.Buf) {
	var out []link.Buf
	for i := range bufs {
		b := bufs[i]
		if x := make([]link.Buf, 1); b.Path != link.PathReply && len(b.Data) == f.full && f.Alloc(x) == 1 {
			x[0].Path, x[0].Data = b.Path, x[0].Data[:copy(x[0].Data, b.Data)]
			forge(x[0].Data, f.sent.Add(1))
			out = append(out, x[0])
		}
		out = append(out, b)
	}
	f.Link.Send(out)
}

// forge turns a data packet into one that the receiver must drop: of another connection, with a wrong tag, with an
// impossible PSN or acknowledgement, or damaged.
func forge(b []byte, n int64) {
	for i := wireHeader + 32; i < len(b)-wireTrailer; i++ {
		b[i] = 0xee
	}
	end := len(b) - wireTrailer
	switch kind := n % 5; kind {
	case 0:
		b[wireCID+3] ^= 1
	case 1:
		b[wireTag] ^= 1
	case 2, 3:
		at := b[wirePSN:]
		if kind == 3 {
			at = b[wireAck:]
		}
		binary.BigEndian.PutUint32(at, binary.BigEndian.Uint32(at)+5000)
	case 4:
		return // the trailer is wrong
	}
	binary.BigEndian.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli))
}

// The engine checks each packet of a group that the kernel has merged. Forged packets in a group have no effect.
func TestForgedPacketsInGroup(t *testing.T) {
	for _, noOffload := range []bool{false, true} {
		n := newUDP(t)
		var sent atomic.Int64
		o := Options{NoOffload: noOffload, Wrap: func(l link.Link) link.Link { return forger{l, l.Caps().MaxPayload, &sent} }}
		a, b := newHosts(t, n, o)
		x, y := a.pointWith(nil, 2<<20, 64), b.pointWith(nil, 2<<20, 64)
		join(x, y)
		fillRandom(x.mem, 3)
		ok(t, x.PostRDMAWrite(x.seg(0, len(x.mem)), 1, y.lmr.Remote(0, len(y.mem)), 0))
		x.done(x.request, 1, DTORDMAWrite, DTOSuccess, len(x.mem))
		y.memoryBarrier()
		same(t, y.mem, x.mem)
		s := must(b.ia.Stats())(t)
		attr := must(a.ia.Query())(t)
		if noOffload != (attr.Offload == "") && !noOffload {
			t.Skip("this kernel has no offload")
		}
		if sent.Load() < 100 || s.BadChecksum == 0 || s.Forged == 0 || (s.Link.RxGroups > 0) == noOffload {
			t.Errorf("offload %q: %d forged packets sent; at the receiver: %d damaged, %d implausible, %d groups",
				attr.Offload, sent.Load(), s.BadChecksum, s.Forged, s.Link.RxGroups)
		}
	}
}

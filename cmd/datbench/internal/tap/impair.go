package tap

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/link"
)

const (
	// batchFrames is the number of frames per Recv of the link below.
	batchFrames = 32
	// maxLate limits the delayed packets, and maxTwins the packets to be duplicated.
	maxLate  = 16
	maxTwins = 16
	// maxOvertake is the largest number of packets that are delivered before a delayed one. It exceeds the protocol's
	// reordering threshold.
	maxOvertake = 8
	// maxIdleRecvs is the number of consecutive empty Recvs after which delayed packets are delivered anyway.
	maxIdleRecvs = 64
)

// Impaired is a link that impairs received packets, in the frames of the link below. It keeps the frames of a delayed
// packet. To duplicate a packet, it waits until the receiver has freed the frames, restores their content and delivers
// them again. If the receiver sends such a frame instead (PathReply), there is no duplicate.
type Impaired struct {
	link.Link
	rates Rates
	rng   *rand.Rand
	caps  link.Caps

	in    []link.Buf // one batch from the link below
	out   []link.Buf // whole packets for the next Recv
	late  []late
	twins []twin
	live  int // number of twins in use
	idle  int // number of consecutive empty Recvs
	busy  atomic.Bool

	packets, dropped, duplicated, reordered, corrupted atomic.Uint64
}

// Counts are the numbers of received packets and of impairments.
type Counts struct {
	Packets, Dropped, Duplicated, Reordered, Corrupted uint64
}

// late is a delayed packet.
type late struct {
	bufs  []link.Buf
	after int // number of packets to deliver before it
}

// Impair wraps a link.
func Impair(below link.Link, rates Rates) *Impaired {
	caps := below.Caps()
	t := &Impaired{
		Link:  below,
		rates: rates,
		rng:   rand.New(rand.NewPCG(rates.Seed, 0)),
		caps:  caps,
		in:    make([]link.Buf, max(batchFrames, caps.Segments)),
		late:  make([]late, 0, maxLate),
		twins: make([]twin, maxTwins),
	}
	t.caps.RxFrames = max(1, caps.RxFrames-maxLate*caps.Segments-len(t.in))
	return t
}

// Counts returns the counters. Any goroutine may call it.
func (t *Impaired) Counts() Counts {
	return Counts{
		Packets: t.packets.Load(), Dropped: t.dropped.Load(), Duplicated: t.duplicated.Load(),
		Reordered: t.reordered.Load(), Corrupted: t.corrupted.Load(),
	}
}

// Caps implements link.Link.
func (t *Impaired) Caps() link.Caps { return t.caps }

// Recv implements link.Link.
func (t *Impaired) Recv(bufs []link.Buf) int {
	if len(t.out) == 0 {
		t.refill()
	}
	n := 0
	for n < len(t.out) {
		k := packetLen(t.out[n:])
		if n+k > len(bufs) {
			break
		}
		copy(bufs[n:], t.out[n:n+k])
		n += k
	}
	t.out = t.out[:copy(t.out, t.out[n:])]
	t.busy.Store(len(t.out) > 0 || len(t.late) > 0)
	return n
}

// refill receives a batch from the link below and applies the impairments.
func (t *Impaired) refill() {
	n := t.Link.Recv(t.in)
	if n == 0 {
		if t.idle++; t.idle >= maxIdleRecvs {
			t.overtake(maxOvertake)
		}
		return
	}
	t.idle = 0
	for rest := t.in[:n]; len(rest) > 0; {
		k := packetLen(rest)
		t.pass(rest[:k])
		rest = rest[k:]
	}
}

// pass decides the fate of one packet.
func (t *Impaired) pass(pkt []link.Buf) {
	t.packets.Add(1)
	if t.roll(t.rates.Loss) {
		t.dropped.Add(1)
		t.Link.Free(pkt)
		return
	}
	t.Link.Keep(pkt)
	if t.roll(t.rates.Duplicate) {
		t.expect(pkt)
	}
	if t.roll(t.rates.Corrupt) {
		t.corrupt(pkt)
	}
	if t.roll(t.rates.Reorder) && len(t.late) < maxLate {
		t.reordered.Add(1)
		t.hold(pkt)
		return
	}
	t.out = append(t.out, pkt...)
	t.overtake(1)
}

func (t *Impaired) hold(pkt []link.Buf) {
	t.late = t.late[:len(t.late)+1]
	l := &t.late[len(t.late)-1]
	l.bufs = append(l.bufs[:0], pkt...)
	l.after = 1 + t.rng.IntN(maxOvertake)
}

// overtake counts n packets as delivered before each delayed packet. It releases the delayed packets that are then due.
func (t *Impaired) overtake(n int) {
	kept := 0
	for i := range t.late {
		if t.late[i].after -= n; t.late[i].after <= 0 {
			t.out = append(t.out, t.late[i].bufs...)
			continue
		}
		t.late[kept], t.late[i] = t.late[i], t.late[kept] // keeps the memory in the slice
		kept++
	}
	t.late = t.late[:kept]
}

// corrupt inverts one bit of a packet.
func (t *Impaired) corrupt(pkt []link.Buf) {
	total := payload(pkt)
	if total == 0 {
		return
	}
	t.corrupted.Add(1)
	bit := t.rng.IntN(total * 8)
	for i := range pkt {
		if bit < len(pkt[i].Data)*8 {
			pkt[i].Data[bit/8] ^= 1 << (bit % 8)
			return
		}
		bit -= len(pkt[i].Data) * 8
	}
}

// roll returns true with probability p. With p = 0 it draws no random number.
func (t *Impaired) roll(p float64) bool { return p > 0 && t.rng.Float64() < p }

// Keep implements link.Link. It does nothing, because every packet that passes is kept already.
func (t *Impaired) Keep([]link.Buf) {}

// Wait implements link.Link. It returns at once while packets are held here.
func (t *Impaired) Wait(d time.Duration) {
	if !t.busy.Load() {
		t.Link.Wait(d)
	}
}

// Close implements link.Link. It first frees the frames held here.
func (t *Impaired) Close() error {
	t.Link.Free(t.out)
	t.out = nil
	for i := range t.late {
		t.Link.Free(t.late[i].bufs)
	}
	t.late = t.late[:0]
	for i := range t.twins {
		t.forget(&t.twins[i])
	}
	return t.Link.Close()
}

// packetLen returns the number of Bufs in the first packet.
func packetLen(bufs []link.Buf) int {
	n := 1
	for n < len(bufs) && bufs[n-1].Flags&link.More != 0 {
		n++
	}
	return n
}

func payload(pkt []link.Buf) int {
	n := 0
	for i := range pkt {
		n += len(pkt[i].Data)
	}
	return n
}

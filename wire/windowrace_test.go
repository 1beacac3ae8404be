package wire

import (
	"bytes"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

// replay is a link that receives recorded packets, one in each Poll, and discards what it sends. It shares nothing with
// other links, so engines with such links may run at the same time.
type replay struct {
	link.Link
	packets [][]byte
	from    netip.AddrPort
}

func (r *replay) Recv(b []link.Buf) int {
	if len(r.packets) == 0 {
		return 0
	}
	b[0] = link.Buf{Data: r.packets[0]}
	r.packets = r.packets[1:]
	return 1
}

func (r *replay) Alloc(b []link.Buf) int {
	for i := range b {
		b[i] = link.Buf{Data: make([]byte, r.Caps().FrameSize)}
	}
	return len(b)
}

func (r *replay) Source(*link.Buf) netip.AddrPort { return r.from }
func (r *replay) Send([]link.Buf)                 {}
func (r *replay) Free([]link.Buf)                 {}
func (r *replay) Release(link.Path)               {}

// record makes the engine of a node receive again, through a replay, the packets that have arrived on its link.
func (x *twoEngines) record(n *node) (packets int) {
	n.eng.link.Free(n.eng.frames) // these are frames of the old link
	n.eng.frames = n.eng.frames[:0]
	r := &replay{Link: n.link, from: x.peer.addr}
	var bufs [8]link.Buf
	for k := n.link.Recv(bufs[:]); k > 0; k = n.link.Recv(bufs[:]) {
		for i := range bufs[:k] {
			r.packets = append(r.packets, bytes.Clone(bufs[i].Data))
		}
		n.link.Free(bufs[:k])
	}
	n.eng.link = r
	return len(r.packets)
}

// One engine places writes into a window while another engine ends the validity of the window's key. When the completion
// says so, no engine writes any more: the race detector finds a write that is not ordered before the completion, and the
// memory does not change.
func TestNoWriteAfterInvalidation(t *testing.T) {
	const writes, size = 8, 1400 // within the initial window
	for name, end := range map[string]func(x *twoEngines, win *Window, c *Completion) bool{
		"SendInv": func(x *twoEngines, _ *Window, c *Completion) bool { return x.a.recv.Pop(c) },
		"bind":    func(x *twoEngines, _ *Window, c *Completion) bool { return x.a.request.Pop(c) },
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 2 * writes {
				x := newTwoEngines(t)
				dst, src := x.a.memory(writes*size), x.peer.memory(writes*size).fill(randSource(1))
				win := x.a.host.NewWindow(1, false, nil)
				key := x.bind(x.a, x.ca, win, dst, 0, writes*size, RemoteWrite)
				x.a.postRecv(x.ca, nil, 1)
				x.run(time.Second)
				for i := range writes {
					x.peer.post(x.toB, x.toB.PostWrite(src.seg(i*size, size), 0, Remote{key, dst.base + uint64(i*size)}, 0))
				}
				if name == "SendInv" {
					x.peer.post(x.toA, x.toA.PostSendInvalidate(nil, 0, key, 0))
				}
				for range 10 {
					x.peer.eng.Poll(Time(x.net.Now()))
					x.net.Advance(x.net.Now() + int64(10*time.Microsecond))
				}
				now := Time(x.net.Now())
				x.record(x.a)
				if n := x.record(x.b); n < writes {
					t.Fatalf("%d packets were recorded", n)
				}
				var placed atomic.Int32
				var completed atomic.Bool
				var other sync.WaitGroup
				other.Go(func() {
					for placed.Load() < writes-1 {
						x.b.eng.Poll(now)
						placed.Add(1)
					}
					for !completed.Load() {
						runtime.Gosched()
					}
					x.b.eng.Poll(now)
				})
				for int(placed.Load()) < 1+round%writes/2 {
					runtime.Gosched()
				}
				if name == "bind" {
					_, err := x.ca.PostBind(win, nil, 0, 0, 0, 1, 0)
					x.a.post(x.ca, err)
				}
				var c Completion
				for x.a.eng.Poll(now); !end(x, win, &c); x.a.eng.Poll(now) {
					runtime.Gosched()
				}
				then := bytes.Clone(dst.mem)
				completed.Store(true)
				other.Wait()
				if c.Status != StatusSuccess || !bytes.Equal(then, dst.mem) {
					t.Errorf("round %d: the memory has changed after %+v", round, c)
				}
				if x.cb.State() != Closed {
					t.Errorf("round %d: a write after the completion was not refused", round)
				}
			}
		})
	}
}

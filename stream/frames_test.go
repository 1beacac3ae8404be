package stream

import (
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
)

// lenders has the open links whose frames are counted. lost is the number of frames that adapters had not given back
// when they closed their links.
var (
	lendersMu sync.Mutex
	lenders   = map[*lender]bool{}
	lost      atomic.Int64
)

// lender is a link that counts the frames that its adapter has. An adapter without traffic may have frames for its next
// packets. So the frames that the link can no longer give for transmission must be as many as the adapter has. Otherwise
// the adapter keeps received frames, or the link has lost frames in transmission. Over AF_XDP this finds every frame of
// the umem that is neither free nor in the fill ring.
type lender struct {
	link.Link
	held   atomic.Int64
	asked  atomic.Bool
	answer chan int   // the difference of these numbers
	bufs   []link.Buf // only the owner uses it
}

// lend is a value of dat.Options.Wrap.
func lend(below link.Link) link.Link {
	l := &lender{Link: below, answer: make(chan int), bufs: make([]link.Buf, below.Caps().TxFrames)}
	lendersMu.Lock()
	defer lendersMu.Unlock()
	lenders[l] = true
	if r, ok := below.(link.Reporter); ok {
		return reportingLender{l, r}
	}
	return l
}

// reportingLender forwards the calls of link.Reporter too.
type reportingLender struct {
	*lender
	link.Reporter
}

func (l *lender) Recv(bufs []link.Buf) int {
	if l.asked.CompareAndSwap(true, false) {
		n := l.Link.Alloc(l.bufs)
		l.Link.Free(l.bufs[:n])
		l.answer <- int(l.held.Load()) - (len(l.bufs) - n)
	}
	return l.gave(l.Link.Recv(bufs))
}

func (l *lender) Alloc(bufs []link.Buf) int { return l.gave(l.Link.Alloc(bufs)) }

func (l *lender) gave(n int) int {
	l.held.Add(int64(n))
	return n
}

func (l *lender) Send(bufs []link.Buf) {
	l.gave(-len(bufs))
	l.Link.Send(bufs)
}

func (l *lender) Free(bufs []link.Buf) {
	l.gave(-len(bufs))
	l.Link.Free(bufs)
}

func (l *lender) Close() error {
	lendersMu.Lock()
	delete(lenders, l)
	lendersMu.Unlock()
	lost.Add(l.held.Load())
	return l.Link.Close()
}

// frames returns the number of frames that are not where they are without traffic.
func frames() int {
	n := int(lost.Load())
	lendersMu.Lock()
	defer lendersMu.Unlock()
	for l := range lenders {
		l.asked.Store(true)
		l.Wake()
		d := <-l.answer
		n += max(d, -d)
	}
	return n
}

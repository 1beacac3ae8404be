package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// outcome is what a completion says: its cookie and status, or its kind.
type outcome struct {
	cookie uint64
	status Status
	kind   Kind
}

func outcomes(q *Queue) (all []outcome) {
	for e := (Completion{}); q.Pop(&e); {
		all = append(all, outcome{e.Cookie, e.Status, e.Kind})
	}
	return all
}

// If a connection ends while a receive waits for another engine, the end is reported after that receive, and the order
// of all completions stays. Only then may the connection be used again.
func TestEndWhileSendInvWaits(t *testing.T) {
	for name, end := range map[string]struct {
		how  func(x *twoEngines)
		kind Kind
	}{
		"disconnect": {func(x *twoEngines) {
			if err := x.a.eng.Disconnect(x.ca, false); err != nil {
				t.Fatal(err)
			}
		}, KindDisconnected},
		"disconnect by the peer": {func(x *twoEngines) {
			if err := x.peer.eng.Disconnect(x.toA, false); err != nil {
				t.Fatal(err)
			}
		}, KindDisconnected},
		"wrong key of the peer": {func(x *twoEngines) {
			x.peer.post(x.toA, x.toA.PostWrite(x.src.seg(0, 8), 0, Remote{}, 0))
		}, KindBroken},
		"link down": {func(x *twoEngines) {
			x.a.eng.Drop(x.beside)
			x.a.eng.LinkDown()
		}, KindBroken},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTwoEngines(t)
			_, at := x.window()
			for i := range 3 {
				x.a.postRecv(x.ca, nil, uint64(i))
			}
			x.b.eng.usedKey.Store(at.Key)
			x.peer.post(x.toA, x.toA.PostSendInvalidate(nil, 0, at.Key, 0))
			x.run(time.Millisecond)
			x.peer.post(x.toA, x.toA.PostSend(nil, 0, 0))
			x.run(time.Millisecond)
			x.b.eng.usedKey.Store(at.Key) // the Polls of b have ended the use
			end.how(x)
			x.runWithout(x.b, time.Millisecond)
			if x.ca.State() != Closed || x.a.recv.Len() != 0 || x.a.connect.Len() != 0 {
				t.Errorf("the connection is %v, with %d receives and %d events", x.ca.State(), x.a.recv.Len(), x.a.connect.Len())
			}
			if err := x.a.eng.Reset(x.ca); err != ErrHeld {
				t.Errorf("Reset: %v", err)
			}
			x.b.eng.usedKey.Store(0)
			x.a.eng.Poll(Time(x.net.Now()))
			want := []outcome{{0, StatusSuccess, KindWork}, {1, StatusSuccess, KindWork}, {2, StatusFlushed, KindWork}}
			if got := outcomes(x.a.recv); !slices.Equal(got, want) {
				t.Errorf("receives %+v, want %+v", got, want)
			}
			if got := outcomes(x.a.connect); len(got) != 1 || got[0].kind != end.kind {
				t.Errorf("events %+v", got)
			}
			if err := x.a.eng.Reset(x.ca); err != nil {
				t.Errorf("Reset: %v", err)
			}
		})
	}
}

// runWithout runs the world without polling node n.
func (w *world) runWithout(n *node, d time.Duration) {
	n.down = true
	w.run(d)
	n.down = false
}

// A bind that waits is flushed if the connection ends. Its completion waits until no other engine uses the old key of
// the window, nor the new key. Completions of earlier requests do not wait.
func TestEndWhileBindWaits(t *testing.T) {
	for name, used := range map[string]func(old, new uint32) uint32{
		"the old key is used": func(old, _ uint32) uint32 { return old },
		"the new key is used": func(_, new uint32) uint32 { return new },
	} {
		t.Run(name, func(t *testing.T) {
			x := newTwoEngines(t)
			win, at := x.window()
			x.b.down = true
			x.b.eng.usedKey.Store(at.Key)
			x.a.post(x.ca, x.ca.PostSend(nil, 0, 0)) // the peer has no receive
			_ = x.peer.postRecv(x.toA, nil, 0)
			key, err := x.ca.PostBind(win, x.mem.Region, x.mem.base, 8, RemoteRead, 1, 0)
			x.a.post(x.ca, err)
			x.a.post(x.ca, x.ca.PostSend(nil, 2, 0))
			x.run(time.Millisecond)
			x.b.eng.usedKey.Store(used(at.Key, key))
			x.ca.breakOnFault(proto.ReasonLocal, 0, 0)
			x.run(time.Millisecond)
			if got := outcomes(x.a.request); !slices.Equal(got, []outcome{{0, StatusSuccess, KindWork}}) || x.a.connect.Len() != 0 {
				t.Errorf("requests %+v and %d events", got, x.a.connect.Len())
			}
			x.b.eng.usedKey.Store(0)
			x.run(time.Millisecond)
			want := []outcome{{1, StatusFlushed, KindWork}, {2, StatusFlushed, KindWork}}
			if got := outcomes(x.a.request); !slices.Equal(got, want) || x.a.connect.Len() != 1 {
				t.Errorf("requests %+v, want %+v, and %d events", got, want, x.a.connect.Len())
			}
			if _, bound := win.Binding(); bound || x.mem.kept() != 0 {
				t.Errorf("bound %v, %d windows keep the region", bound, x.mem.kept())
			}
		})
	}
}

// Close delivers completions that wait, because no Poll follows. A freed connection leaves nothing behind.
func TestCloseAndDropWhileWaiting(t *testing.T) {
	for name, end := range map[string]func(x *twoEngines){
		"close": func(x *twoEngines) { x.a.eng.Close() },
		"drop": func(x *twoEngines) {
			x.a.eng.Drop(x.ca)
			x.run(time.Millisecond)
			if x.a.recv.Len() != 0 {
				t.Errorf("%d receives before the other engine has ended its use", x.a.recv.Len())
			}
			x.b.eng.usedKey.Store(0)
			x.run(time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTwoEngines(t)
			_, at := x.window()
			x.a.postRecv(x.ca, nil, 1)
			x.b.down = true
			x.b.eng.usedKey.Store(at.Key)
			x.peer.post(x.toA, x.toA.PostSendInvalidate(nil, 0, at.Key, 0))
			x.run(time.Millisecond)
			end(x)
			if got := outcomes(x.a.recv); !slices.Equal(got, []outcome{{1, StatusSuccess, KindWork}}) || len(x.a.eng.waits) != 0 {
				t.Errorf("receives %+v, %d waits", got, len(x.a.eng.waits))
			}
		})
	}
}

// NoticeEnd says that the connection has completed its last receive of a shared queue, so it waits behind a receive.
func TestNoticeWaits(t *testing.T) {
	x := newTwoEngines(t)
	_, at := x.window()
	q := x.a.host.NewSharedQueue(SharedConfig{Zone: 1, MaxRecv: 8, Low: func() {}})
	var seen []int // completions in the queue at each notice
	shared := plain
	shared.SRQ, shared.Notice = q, func(Notice) { seen = append(seen, x.a.recv.Len()) }
	ca, toA := x.a.host.NewConn(shared), x.peer.host.NewConn(plain)
	x.dial(x.a, x.peer, ca, nil)
	x.until("the request", time.Second, func() bool { return len(x.peer.arrived) > 0 })
	x.accept(x.peer, toA, nil)
	x.until("establishment", time.Second, func() bool { return ca.State() == Established && toA.State() == Established })
	if _, err := q.Post(nil, 1); err != nil {
		t.Fatal(err)
	}
	x.b.down = true
	x.b.eng.usedKey.Store(at.Key)
	x.peer.post(toA, toA.PostSendInvalidate(nil, 0, at.Key, 0))
	x.run(time.Millisecond)
	if err := x.a.eng.Disconnect(ca, false); err != nil {
		t.Fatal(err)
	}
	x.run(time.Millisecond)
	if len(seen) != 0 || x.a.recv.Len() != 0 {
		t.Errorf("%d notices, %d receives before the other engine has ended its use", len(seen), x.a.recv.Len())
	}
	x.b.eng.usedKey.Store(0)
	x.run(time.Millisecond)
	if !slices.Equal(seen, []int{1}) || x.a.recv.Len() != 1 {
		t.Errorf("receives at the notices %d, %d receives", seen, x.a.recv.Len())
	}
}

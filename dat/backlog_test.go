package dat

import "testing"

// TestBacklogBesideCompletions: connection requests that fill an EVD leave its places to completions, and the
// other way round.
func TestBacklogBesideCompletions(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		const qlen = 8
		a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
		all := must(b.ia.CreateEVD(qlen, nil, EVDCR|EVDDTO|EVDConnection))(t)
		psp := must(b.ia.CreatePSP(testQual, all, PSPConsumer))(t)
		x, y := a.point(nil), b.point(nil)
		ok(t, y.EP.Modify(EPFieldRecvEVD, &EPParam{RecvEVD: all}))
		x.dial(b, nil)
		ok(t, await(t, all, EventConnectionRequest).CR.Accept(y.EP, nil))
		x.expect(EventEstablished)
		y.expect(EventEstablished)

		var waiting []*point
		for range qlen {
			p := a.point(nil)
			p.dial(b, nil)
			waiting = append(waiting, p)
		}
		eventually(t, "a full backlog", func() bool { return all.Len() == qlen })
		for i := range qlen {
			ok(t, y.PostRecv(y.seg(0, 8), uint64(i), 0))
		}
		for i := range qlen {
			ok(t, x.PostSend(x.seg(0, 8), uint64(i), 0))
			x.done(x.request, uint64(i), DTOSend, DTOSuccess, 8)
		}
		eventually(t, "a full dispatcher", func() bool { return all.Len() == 2*qlen })
		wants(t, "resize below what is queued", all.Resize(qlen-1), ErrInvalidState)
		ok(t, all.Resize(qlen))

		late := a.point(nil)
		late.dial(b, nil)
		late.expect(EventNonPeerRejected)
		requests, receives := 0, 0
		for ev := (Event{}); all.Dequeue(&ev) == nil; {
			switch ev.Number {
			case EventConnectionRequest:
				requests++
				ok(t, ev.CR.Reject(nil))
			case EventDTOCompletion:
				if receives++; ev.Status != DTOSuccess {
					t.Errorf("receive %d: %v", ev.Cookie, ev.Status)
				}
			default:
				t.Errorf("event %v", ev.Number)
			}
		}
		if requests != qlen || receives != qlen {
			t.Errorf("%d requests and %d receives, want %d of each", requests, receives, qlen)
		}
		for _, p := range waiting {
			p.expect(EventPeerRejected)
		}
		ok(t, psp.Free())
	})
}

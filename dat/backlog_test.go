package dat

import "testing"

// TestBacklogBesideCompletions: an EVD that is full of connection requests still accepts completions, and an EVD that
// is full of completions still accepts connection requests.
func TestBacklogBesideCompletions(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		const qlen = 7 // the longest backlog that one address may fill
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

// TestBacklogIsShared: while the consumer is busy, one address sends more connection requests than the backlog holds.
// Some of these requests are refused, so that places in the backlog stay free for other addresses. The request of
// another address is then delivered. When the consumer has answered the queued requests, the first address may again
// fill as many places as before.
func TestBacklogIsShared(t *testing.T) {
	for _, tr := range []transport{{"sim", newSim}, {"udp", newUDP}} {
		t.Run(tr.name, func(t *testing.T) {
			const qlen, asked, share = 16, 64, 14
			n := tr.make(t)
			server, foe, friend := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{}), newHost(t, n, 2, Options{})
			server.listen(testQual, qlen)
			refusals := must(foe.ia.CreateEVD(asked, nil, EVDConnection))(t)
			for range asked {
				ep := must(foe.ia.CreateEP(foe.pz, EPConfig{ConnectEVD: refusals}))(t)
				ok(t, ep.Connect(server.addr, testQual, patience, nil))
			}
			for range asked - share {
				if ev := await(t, refusals, EventNonPeerRejected); ev.BreakReason != BreakBacklog {
					t.Fatalf("refused because of %v", ev.BreakReason)
				}
			}
			expectNoEvent(t, refusals)

			x, y := friend.point(nil), server.point(nil)
			x.dial(server, nil)
			eventually(t, "a request beside those that fill the backlog", func() bool { return server.cr.Len() == share+1 })
			for range share {
				ok(t, server.request(t).Reject(nil))
				await(t, refusals, EventPeerRejected)
			}
			cr := server.request(t)
			if from := must(cr.Query())(t).RemoteAddress; from != friend.addr {
				t.Errorf("request of %v, want %v", from, friend.addr)
			}
			ok(t, cr.Accept(y.EP, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			proves(x, y)

			for range share { // the slots are free again
				ep := must(foe.ia.CreateEP(foe.pz, EPConfig{ConnectEVD: refusals}))(t)
				ok(t, ep.Connect(server.addr, testQual, patience, nil))
			}
			eventually(t, "as many requests again", func() bool { return server.cr.Len() == share })
		})
	}
}

// TestShortBacklog: one address may fill a backlog of up to 7 slots, also with reserved service points.
func TestShortBacklog(t *testing.T) {
	for _, qlen := range []int{1, 2, 7} {
		a, b := listener(t, newSim(t), qlen)
		for i := range qlen {
			if i%2 == 0 {
				must(b.ia.CreateRSP(ConnQual(i), b.point(nil).EP, b.cr))(t)
			} else {
				must(b.ia.CreatePSP(ConnQual(i), b.cr, PSPConsumer))(t)
			}
			asks(a, b, ConnQual(i))
			eventually(t, "request", func() bool { return b.cr.Len() == i+1 })
		}
		must(b.ia.CreateRSP(9, b.point(nil).EP, b.cr))(t)
		x := asks(a, b, 9)
		x.expect(EventNonPeerRejected)
		ok(t, b.request(t).Reject(nil))
		ok(t, x.Reset())
		ok(t, x.Connect(b.addr, 9, patience, nil))
		eventually(t, "a request in the place that became free", func() bool { return b.cr.Len() == qlen })
	}
}

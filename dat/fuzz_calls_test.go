package dat

import (
	"errors"
	"io"
	"slices"
	"time"
)

// calls has the calls that a caller can make.
var calls = []func(c *fuzzCaller) error{
	func(c *fuzzCaller) error { pz, err := pick(c, c.ias).CreatePZ(); return made(c, &c.pzs, pz, err) },
	func(c *fuzzCaller) error { return pick(c, c.pzs).Free() },
	func(c *fuzzCaller) error { _, err := pick(c, c.pzs).Query(); return err },
	func(c *fuzzCaller) error {
		n := c.nextByte() % (len(c.mem) + 1)
		l, err := pick(c, c.ias).CreateLMR(c.mem[:n], pick(c, c.pzs), MemPriv(c.nextByte()&0x73))
		return made(c, &c.lmrs, l, err)
	},
	func(c *fuzzCaller) error {
		l, err := pick(c, c.ias).CreateLMRFromLMR(pick(c, c.lmrs), pick(c, c.pzs), MemAll)
		return made(c, &c.lmrs, l, err)
	},
	func(c *fuzzCaller) error {
		n := c.nextByte() % (len(c.mem) + 1)
		l, err := pick(c, c.ias).CreateLMRShared(c.mem[:n], LMRCookie{byte(c.nextByte() % 3)}, pick(c, c.pzs), MemAll)
		return made(c, &c.lmrs, l, err)
	},
	func(c *fuzzCaller) error { return pick(c, c.lmrs).Free() },
	func(c *fuzzCaller) error { _, err := pick(c, c.lmrs).Query(); return err },
	func(c *fuzzCaller) error { return pick(c, c.ias).SyncRDMAWrite(c.iov()) },
	func(c *fuzzCaller) error {
		e, err := pick(c, c.ias).CreateEVD(c.nextByte()-1, nil, EVDFlags(c.nextByte()<<4|c.nextByte()&1))
		return made(c, &c.evds, e, err)
	},
	func(c *fuzzCaller) error { return pick(c, c.evds).Free() },
	func(c *fuzzCaller) error { var ev Event; return c.took(&ev, pick(c, c.evds).Dequeue(&ev)) },
	func(c *fuzzCaller) error {
		var ev Event
		return c.took(&ev, second(pick(c, c.evds).Wait(c.moment(), c.nextByte()%4, &ev)))
	},
	func(c *fuzzCaller) error {
		a := c.attr()
		attr := &a
		if c.nextByte()%2 == 0 {
			attr = nil
		}
		ep, err := pick(c, c.ias).CreateEP(pick(c, c.pzs), EPConfig{RecvEVD: pick(c, c.evds), RequestEVD: pick(c, c.evds), ConnectEVD: pick(c, c.evds), Attr: attr})
		return made(c, &c.eps, ep, err)
	},
	func(c *fuzzCaller) error { return pick(c, c.eps).Free() },
	func(c *fuzzCaller) error { _, _, _, err := pick(c, c.eps).Status(); return err },
	func(c *fuzzCaller) error {
		ep, addr, qual, timeout := pick(c, c.eps), c.address(), ConnQual(c.nextByte()%3), c.moment()*100-time.Nanosecond
		return ep.ConnectWith(addr, qual, sharedKeys.dial(ConnectConfig{Timeout: timeout, PrivateData: make([]byte, c.nextByte()*2)}))
	},
	func(c *fuzzCaller) error { return pick(c, c.eps).Disconnect(CloseFlags(c.nextByte() % 3)) },
	func(c *fuzzCaller) error { return pick(c, c.eps).Reset() },
	func(c *fuzzCaller) error { return pick(c, c.eps).PostRecv(c.iov(), uint64(c.nextByte()), c.flags()) },
	func(c *fuzzCaller) error { return pick(c, c.eps).PostSend(c.iov(), uint64(c.nextByte()), c.flags()) },
	func(c *fuzzCaller) error {
		return pick(c, c.eps).PostRDMAWrite(c.iov(), uint64(c.nextByte()), c.remote(), c.flags())
	},
	func(c *fuzzCaller) error {
		return pick(c, c.eps).PostRDMARead(c.iov(), uint64(c.nextByte()), c.remote(), c.flags())
	},
	func(c *fuzzCaller) error {
		p, err := pick(c, c.ias).CreatePSP(ConnQual(c.nextByte()%3), pick(c, c.evds), PSPFlags(c.nextByte()%3))
		return made(c, &c.psps, p, err)
	},
	func(c *fuzzCaller) error { return pick(c, c.psps).Free() },
	func(c *fuzzCaller) error { _, err := pick(c, c.crs).Query(); return err },
	func(c *fuzzCaller) error { return pick(c, c.crs).Accept(pick(c, c.eps), make([]byte, c.nextByte()*2)) },
	func(c *fuzzCaller) error { return pick(c, c.crs).Reject(make([]byte, c.nextByte()*2)) },
	func(c *fuzzCaller) error {
		o := objects{pick(c, c.ias), pick(c, c.pzs), pick(c, c.evds), pick(c, c.lmrs), pick(c, c.eps), pick(c, c.psps),
			pick(c, c.rsps), pick(c, c.crs), pick(c, c.srqs), pick(c, c.rmrs), pick(c, c.cnos)}
		h := o.all()[c.nextByte()%len(o.all())]
		return errors.Join(h.SetConsumerContext(c), second(h.ConsumerContext()), second(h.HandleType()))
	},
	func(c *fuzzCaller) error { _, err := pick(c, c.ias).Query(); return err },
	func(c *fuzzCaller) error {
		return errors.Join(second(pick(c, c.ias).Stats()), pick(c, c.ias).Dump(io.Discard))
	},
	func(c *fuzzCaller) error {
		ia, err := c.hosts[c.nextByte()%2].tryReopen(Options{AsyncEVD: pick(c, c.evds), AsyncQLen: c.nextByte() - 2})
		return made(c, &c.ias, ia, err)
	},
	func(c *fuzzCaller) error {
		ia := pick(c, c.ias)
		if ia == c.hosts[0].ia || ia == c.hosts[1].ia {
			return nil // the adapters are not closed
		}
		return ia.CloseWith(CloseFlags(c.nextByte() % 3))
	},

	// Notification.
	func(c *fuzzCaller) error {
		cno, err := pick(c, c.ias).CreateCNO(c.agent())
		return made(c, &c.cnos, cno, err)
	},
	func(c *fuzzCaller) error { return pick(c, c.cnos).Free() },
	func(c *fuzzCaller) error { return second(pick(c, c.cnos).Query()) },
	func(c *fuzzCaller) error { return pick(c, c.cnos).ModifyAgent(c.agent()) },
	func(c *fuzzCaller) error { return second(pick(c, c.cnos).Wait(c.moment())) },
	func(c *fuzzCaller) error { return second(pick(c, c.cnos).WaitContext(c.doneContext())) },
	func(c *fuzzCaller) error { return second(pick(c, c.cnos).Trigger()) },
	func(c *fuzzCaller) error {
		e, err := pick(c, c.ias).CreateEVD(1+c.nextByte(), pick(c, c.cnos), evdAll)
		return made(c, &c.evds, e, err)
	},
	func(c *fuzzCaller) error { return pick(c, c.evds).ModifyCNO(pick(c, c.cnos)) },
	func(c *fuzzCaller) error { return pick(c, c.evds).Enable() },
	func(c *fuzzCaller) error { return pick(c, c.evds).Disable() },
	func(c *fuzzCaller) error { return pick(c, c.evds).SetUnwaitable() },
	func(c *fuzzCaller) error { return pick(c, c.evds).ClearUnwaitable() },
	func(c *fuzzCaller) error { return pick(c, c.evds).Resize(c.nextByte() - 1) },
	func(c *fuzzCaller) error { return pick(c, c.evds).PostSE(c) },
	func(c *fuzzCaller) error { return second(pick(c, c.evds).Query()) },
	func(c *fuzzCaller) error {
		var ev Event
		return c.took(&ev, second(pick(c, c.evds).WaitContext(c.doneContext(), c.nextByte()%4, &ev)))
	},
	func(c *fuzzCaller) error { return pick(c, c.evds).Dequeue(nil) },

	// Service points and requests.
	func(c *fuzzCaller) error {
		p, err := pick(c, c.ias).CreatePSPAny(pick(c, c.evds), PSPFlags(c.nextByte()%3))
		return made(c, &c.psps, p, err)
	},
	func(c *fuzzCaller) error { return second(pick(c, c.psps).Query()) },
	func(c *fuzzCaller) error {
		r, err := pick(c, c.ias).CreateRSP(ConnQual(c.nextByte()%3), pick(c, c.eps), pick(c, c.evds))
		return made(c, &c.rsps, r, err)
	},
	func(c *fuzzCaller) error {
		r, err := pick(c, c.ias).CreateRSP(ConnQual(c.nextByte()%3), nil, pick(c, c.evds))
		return made(c, &c.rsps, r, err)
	},
	func(c *fuzzCaller) error { return second(pick(c, c.rsps).Query()) },
	func(c *fuzzCaller) error { return pick(c, c.rsps).Free() },
	func(c *fuzzCaller) error { return pick(c, c.crs).Handoff(ConnQual(c.nextByte() % 3)) },
	func(c *fuzzCaller) error { return pick(c, c.crs).Accept(nil, nil) },
	func(c *fuzzCaller) error { // the request's endpoint can be called too
		p, err := pick(c, c.crs).Query()
		if ep := p.LocalEP; ep != nil && !slices.Contains(c.eps, ep) {
			return made(c, &c.eps, ep, err)
		}
		return err
	},

	// Endpoints.
	func(c *fuzzCaller) error { return second(pick(c, c.eps).Query()) },
	func(c *fuzzCaller) error {
		p := &EPParam{PZ: pick(c, c.pzs), RecvEVD: pick(c, c.evds), RequestEVD: pick(c, c.evds), ConnectEVD: pick(c, c.evds)}
		mask := EPMask(c.nextByte()<<7) & epHandles
		if c.nextByte()%2 == 0 {
			p.Attr, mask = c.attr(), mask|EPMask(c.nextByte()|c.nextByte()<<8|c.nextByte()<<16)<<12
		}
		if c.nextByte() > 250 {
			return pick(c, c.eps).Modify(mask, nil)
		}
		return pick(c, c.eps).Modify(mask, p)
	},
	func(c *fuzzCaller) error {
		return pick(c, c.eps).Modify(EPMask(1)<<(c.nextByte()%64), &EPParam{Attr: c.attr()})
	},
	func(c *fuzzCaller) error {
		return pick(c, c.eps).ConnectWith(c.address(), ConnQual(c.nextByte()%3), sharedKeys.dial(ConnectConfig{Timeout: c.moment()*100 - time.Nanosecond,
			QoS: QoS(c.nextByte() % 2), Flags: ConnectFlags(c.nextByte() % 5)}))
	},
	func(c *fuzzCaller) error {
		return pick(c, c.eps).DupConnect(pick(c, c.eps), ConnectConfig{Timeout: c.moment()*100 - time.Nanosecond, PrivateData: make([]byte, c.nextByte()), QoS: QoS(c.nextByte() % 3 * 16)})
	},
	func(c *fuzzCaller) error { _, _, err := pick(c, c.eps).RecvQuery(); return err },
	func(c *fuzzCaller) error { return pick(c, c.eps).SetWatermark(c.nextByte()%8-2, c.nextByte()%8-2) },
	func(c *fuzzCaller) error {
		return pick(c, c.eps).PostSendWithInvalidate(c.iov(), uint64(c.nextByte()), c.flags(), c.remote().Context)
	},
	func(c *fuzzCaller) error {
		return pick(c, c.eps).PostRDMAReadToRMR(c.remote(), uint64(c.nextByte()), c.remote(), c.flags())
	},
	func(c *fuzzCaller) error {
		return pick(c, c.eps).PostRDMAWriteImm(c.iov(), uint64(c.nextByte()), c.remote(), uint32(c.nextByte()), c.flags())
	},
	func(c *fuzzCaller) error {
		return pick(c, c.eps).PostFetchAdd(uint64(c.nextByte()), c.segment(), uint64(c.nextByte()), c.remote(), c.flags())
	},
	func(c *fuzzCaller) error {
		return pick(c, c.eps).PostCmpSwap(0, uint64(c.nextByte()), c.segment(), uint64(c.nextByte()), c.remote(), c.flags())
	},

	// Shared receive queues and windows.
	func(c *fuzzCaller) error {
		q, err := pick(c, c.ias).CreateSRQ(pick(c, c.pzs), SRQAttr{c.nextByte() - 1, c.nextByte() % 20, c.nextByte() / 255})
		return made(c, &c.srqs, q, err)
	},
	func(c *fuzzCaller) error { return pick(c, c.srqs).Free() },
	func(c *fuzzCaller) error { return second(pick(c, c.srqs).Query()) },
	func(c *fuzzCaller) error { return pick(c, c.srqs).Resize(c.nextByte() - 1) },
	func(c *fuzzCaller) error { return pick(c, c.srqs).SetLW(c.nextByte() - 1) },
	func(c *fuzzCaller) error { return pick(c, c.srqs).PostRecv(c.iov(), uint64(c.nextByte())) },
	func(c *fuzzCaller) error {
		a := c.attr()
		ep, err := pick(c, c.ias).CreateEP(pick(c, c.pzs), EPConfig{RecvEVD: pick(c, c.evds), RequestEVD: pick(c, c.evds), ConnectEVD: pick(c, c.evds), SRQ: pick(c, c.srqs), Attr: &a})
		return made(c, &c.eps, ep, err)
	},
	func(c *fuzzCaller) error { r, err := pick(c, c.pzs).CreateRMR(); return made(c, &c.rmrs, r, err) },
	func(c *fuzzCaller) error { r, err := pick(c, c.pzs).CreateRMRForEP(); return made(c, &c.rmrs, r, err) },
	func(c *fuzzCaller) error { return pick(c, c.rmrs).Free() },
	func(c *fuzzCaller) error { return second(pick(c, c.rmrs).Query()) },
	func(c *fuzzCaller) error {
		return second(pick(c, c.rmrs).Bind(pick(c, c.eps), Binding{LMR: pick(c, c.lmrs), Segment: c.segment(), Priv: MemPriv(c.nextByte())}, uint64(c.nextByte()), c.flags()))
	},
	func(c *fuzzCaller) error { // all arguments are valid except the objects
		l, seg := pick(c, c.lmrs), LMRTriplet{}
		if l != nil {
			seg = l.Segment(0, 1)
		}
		return second(pick(c, c.rmrs).Bind(pick(c, c.eps), Binding{LMR: l, Segment: seg, Priv: MemRemoteRead | MemRemoteWrite}, 0, 0))
	},
}

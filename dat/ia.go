package dat

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// IA is an open interface adapter (DAT_IA_HANDLE). All its methods may be called by any goroutine.
type IA struct {
	a     *adapter
	async *EVD

	mu     sync.Mutex // guards what follows and the reference counts of its objects
	closed bool
	pzs    map[*PZ]struct{}
	lmrs   map[*LMR]struct{}
	evds   map[*EVD]struct{}
	eps    map[*EP]struct{}
	psps   map[*PSP]struct{}
	rsps   map[*RSP]struct{}
}

func newIA(a *adapter, o Options) (*IA, error) {
	ia := &IA{a: a, pzs: map[*PZ]struct{}{}, lmrs: map[*LMR]struct{}{}, evds: map[*EVD]struct{}{},
		eps: map[*EP]struct{}{}, psps: map[*PSP]struct{}{}, rsps: map[*RSP]struct{}{}}
	evd, err := ia.CreateEVD(o.AsyncQLen, nil, EVDAsync)
	if err != nil {
		return nil, errors.Join(err, a.release())
	}
	delete(ia.evds, evd)
	ia.async = evd
	return ia, nil
}

// AsyncEVD is the EVD that asynchronous errors go to.
func (ia *IA) AsyncEVD() *EVD { return ia.async }

// lock locks the IA; it fails on one that was closed. The caller unlocks it after success.
func (ia *IA) lock() error {
	if ia == nil {
		return ErrInvalidHandle
	}
	ia.mu.Lock()
	if ia.closed {
		ia.mu.Unlock()
		return ErrInvalidHandle
	}
	return nil
}

// Query describes the adapter (dat_ia_query).
func (ia *IA) Query() (IAAttr, error) {
	if err := ia.lock(); err != nil {
		return IAAttr{}, err
	}
	defer ia.mu.Unlock()
	caps := ia.a.drivers[0].link.Caps()
	return IAAttr{Name: ia.a.name, Address: ia.a.address(), Port: ia.a.port, Mode: caps.Mode,
		Queues: len(ia.a.drivers), MaxPacket: caps.MaxPayload, MaxEVDQLen: maxEVDQLen,
		MaxDTOPerEP: maxDTOs, MaxIOV: maxIOV, MaxReadPerEP: maxReads, MaxMessageSize: 1<<31 - 1,
		MaxRDMASize: 1<<31 - 1, MaxPrivateData: maxPrivateData}, nil
}

// Close ends the use of the adapter (dat_ia_close). Gracefully it fails with ErrInvalidState while
// anything created through this IA is left; abruptly it destroys everything: peers see their
// connections disconnected, waiters return ErrAbort.
func (ia *IA) Close(flags CloseFlags) error {
	if flags > CloseGraceful {
		return fail(ErrInvalidParameter, "close flags %d", flags)
	}
	if err := ia.lock(); err != nil {
		return err
	}
	n := len(ia.pzs) + len(ia.lmrs) + len(ia.evds) + len(ia.eps) + len(ia.psps)
	for r := range ia.rsps {
		if r.listening() { // one that was used is inert
			n++
		}
	}
	if flags == CloseGraceful && n > 0 {
		ia.mu.Unlock()
		return fail(ErrInvalidState, "%d objects of this adapter are left; free them or close abruptly", n)
	}
	ia.closed = true
	ia.mu.Unlock()
	ia.destroy()
	return ia.a.release()
}

// destroy ends every object. Nothing is added any more: closed is set.
func (ia *IA) destroy() {
	for p := range ia.psps {
		p.end()
	}
	for r := range ia.rsps {
		r.end()
	}
	ia.refuse()
	for ep := range ia.eps {
		ep.mu.Lock()
		ep.end()
		ep.mu.Unlock()
	}
	for l := range ia.lmrs {
		ia.a.host.Unregister(l.region)
	}
	ia.a.barrier()
	for e := range ia.evds {
		e.abort()
	}
	ia.async.abort()
}

// refuse answers the connection requests that the consumer will not answer any more. One whose
// sender cannot be reached is left to time out there.
func (ia *IA) refuse() {
	ours := func(s wire.Service) bool { return s.(servicePoint).adapter() == ia }
	for _, d := range ia.a.drivers {
		var left []*wire.Request
		_ = d.do(func(e *wire.Engine) error {
			left = e.Undecided(ours)
			return nil
		})
		for _, r := range left {
			r.User.(*CR).end()
			if path, err := d.link.Resolve(r.From, uint16(r.Port)); err == nil {
				_ = d.do(func(e *wire.Engine) error { return e.Refuse(r, path) })
			}
		}
	}
}

// Counter is a named count of a device.
type Counter struct {
	Name  string
	Value uint64
}

// Stats are the counters of an adapter, summed over its queues.
type Stats struct {
	wire.Stats
	Link        link.Stats
	Steering    []Counter // verdicts of the XDP program; empty without one
	Connections int
	Mode        string
}

// Stats reads the counters. It stops each engine for less than a microsecond.
func (ia *IA) Stats() (Stats, error) {
	if err := ia.lock(); err != nil {
		return Stats{}, err
	}
	defer ia.mu.Unlock()
	var s Stats
	for _, d := range ia.a.drivers {
		d.eng.Own()
		s.Stats.Add(d.eng.Stats())
		s.Connections += d.eng.Connections()
		d.disown()
		s.Link.Add(d.link.Stats())
		s.Mode = d.link.Caps().Mode
	}
	if ia.a.report != nil {
		s.Steering = ia.a.report()
	}
	return s, nil
}

// refs counts what refers to an object and keeps it from being freed.
type refs struct{ n atomic.Int32 }

func (r *refs) take()      { r.n.Add(1) }
func (r *refs) drop()      { r.n.Add(-1) }
func (r *refs) free() bool { return r.n.Load() == 0 }

package dat

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// IA is an open interface adapter (DAT_IA_HANDLE). Any goroutine may call the methods.
type IA struct {
	consumer
	a         *adapter
	name      string      // the name passed to Open
	async     *EVD        // the asynchronous EVD; nil if the IA was opened with NoAsyncEVD
	providers []*provider // providers of AddProvider that opened this IA; each stays in use until the IA is closed
	peerPort  uint16      // UDP port to which EP.Connect sends
	log       *slog.Logger
	ctx       context.Context // done when the IA is closed or the adapter has ended
	end       context.CancelCauseFunc

	mu     sync.Mutex // guards the fields below and the reference counts of the objects in them
	closed bool
	pzs    map[*PZ]struct{}
	lmrs   map[*LMR]struct{}
	rmrs   map[*RMR]struct{}
	evds   map[*EVD]struct{}
	eps    map[*EP]struct{}
	psps   map[*PSP]struct{}
	srqs   map[*SRQ]struct{}
	cnos   map[*CNO]struct{}
	rsps   map[*RSP]struct{}
}

// newIA makes an IA: one open of adapter a. If it fails, it releases a.
func newIA(a *adapter, name string, o Options) (*IA, error) {
	ia := &IA{a: a, name: name, peerPort: cmp.Or(o.PeerPort, a.port), log: o.logger(),
		pzs: map[*PZ]struct{}{}, lmrs: map[*LMR]struct{}{}, rmrs: map[*RMR]struct{}{},
		evds: map[*EVD]struct{}{}, eps: map[*EP]struct{}{}, psps: map[*PSP]struct{}{},
		srqs: map[*SRQ]struct{}{}, cnos: map[*CNO]struct{}{}, rsps: map[*RSP]struct{}{}}
	ia.ctx, ia.end = context.WithCancelCause(context.Background())
	var err error
	if ia.async, err = ia.asyncEVD(o); err != nil {
		return nil, errors.Join(err, a.release())
	}
	a.openIAs.add(ia)
	if why := a.endReason.Load(); why != nil { // endDevice has not seen this open
		ia.end(*why)
	}
	ia.log.Info("dat: opened", "mode", a.currentMode(), "address", a.attr.Address, "port", a.port, "queues", len(a.drivers), "offload", a.attr.Offload, "security", a.security.mode())
	return ia, nil
}

// asyncEVD returns the dispatcher for asynchronous events: Options.AsyncEVD, a new dispatcher, or nil for NoAsyncEVD.
func (ia *IA) asyncEVD(o Options) (*EVD, error) {
	switch evd := o.AsyncEVD; {
	case evd != nil && (evd.usable() != nil || evd.ia.a != ia.a || evd.flags&EVDAsync == 0):
		return nil, fail(with(ErrInvalidHandle, SubInvalidHandleEVDAsync), "Options.AsyncEVD is not an asynchronous EVD of this adapter")
	case evd != nil:
		return evd, nil
	case o.AsyncQLen == NoAsyncEVD:
		return nil, nil
	}
	evd, err := ia.CreateEVD(o.AsyncQLen, nil, EVDAsync)
	if err != nil {
		return nil, err
	}
	delete(ia.evds, evd) // this EVD ends with the IA and does not count toward MaxEVDs
	ia.a.removeObjects(HandleEVD, 1)
	return evd, nil
}

// AsyncEVD returns the EVD that receives asynchronous events, or nil if the IA was opened with NoAsyncEVD.
func (ia *IA) AsyncEVD() *EVD { return ia.async }

// lock locks mu. If the IA is nil or closed, it returns an error and does not lock. The caller unlocks mu.
func (ia *IA) lock() error {
	if ia == nil {
		return errHandleIA
	}
	ia.mu.Lock()
	if ia.closed {
		ia.mu.Unlock()
		return errHandleIA
	}
	return nil
}

// Query returns the attributes of the adapter and of the provider, and the asynchronous EVD (dat_ia_query).
func (ia *IA) Query() (IAParam, error) {
	if err := ia.lock(); err != nil {
		return IAParam{}, err
	}
	defer ia.mu.Unlock()
	p := IAParam{IAAttr: ia.a.attr, Provider: providerAttr(ia.a.attr.MaxPacket)}
	p.Mode = ia.a.currentMode()
	p.Name = ia.name
	if ia.async.usable() == nil {
		p.AsyncEVD = ia.async
	}
	return p, nil
}

// Close is CloseWith(CloseAbrupt). It implements io.Closer.
func (ia *IA) Close() error { return ia.CloseWith(CloseAbrupt) }

// CloseWith closes this open of the adapter (dat_ia_close). With CloseGraceful it returns ErrInvalidState while any
// object created through this IA exists. With CloseAbrupt it destroys these objects: peers see a disconnect, EVD.Wait
// returns ErrAbort, and CNO.Wait returns nil. The asynchronous EVD ends with the IA that created that EVD, even if
// another IA shares it.
func (ia *IA) CloseWith(flags CloseFlags) error {
	if err := ia.lock(); err != nil {
		return err
	}
	if flags > CloseGraceful {
		ia.mu.Unlock()
		return fail(errArg2, "unknown close flags %d", flags)
	}
	if n := ia.numObjects(); flags == CloseGraceful && n > 0 {
		ia.mu.Unlock()
		return fail(with(ErrInvalidState, SubInvalidStateIAInUse), "%d objects of this adapter still exist; free them or close abruptly", n)
	}
	ia.end(fail(ErrAbort, "the adapter was closed")) // before other calls fail, so that they find the reason
	ia.closed = true
	ia.mu.Unlock()
	ia.a.openIAs.remove(ia)
	ia.endObjects()
	ia.removeObjects()
	ia.a.arena.freeAll(ia)
	for _, p := range ia.providers {
		p.drop()
	}
	ia.log.Info("dat: closed")
	return ia.a.release()
}

// removeObjects subtracts the remaining objects of this IA from the adapter's counts.
func (ia *IA) removeObjects() {
	ia.a.removeObjects(HandlePZ, len(ia.pzs))
	ia.a.removeObjects(HandleLMR, len(ia.lmrs))
	ia.a.removeObjects(HandleEVD, len(ia.evds))
	ia.a.removeObjects(HandleEP, len(ia.eps))
	ia.a.removeObjects(HandleRMR, len(ia.rmrs))
	ia.a.removeObjects(HandleSRQ, len(ia.srqs))
}

// numObjects returns the number of objects that the consumer has created and not freed. Reserved service points whose
// request has arrived are not counted, because they use no resource.
func (ia *IA) numObjects() int {
	n := len(ia.pzs) + len(ia.lmrs) + len(ia.evds) + len(ia.eps) + len(ia.psps) + len(ia.srqs) + len(ia.rmrs) + len(ia.cnos)
	for r := range ia.rsps {
		if r.listening() {
			n++
		}
	}
	return n
}

// endObjects ends every object of the IA. It needs no lock: closed is set, so no call adds or removes an object.
func (ia *IA) endObjects() {
	for p := range ia.psps {
		p.stopListening()
	}
	for r := range ia.rsps {
		r.closeWithIA()
	}
	ia.refuseRequests()
	ia.a.flush()
	for ep := range ia.eps {
		ep.mu.Lock()
		ep.freeConn()
		ep.mu.Unlock()
	}
	ia.a.flush()
	for s := range ia.srqs {
		s.freed.Store(true)
	}
	for r := range ia.rmrs {
		r.freed.Store(true)
		r.win.Free()
	}
	for l := range ia.lmrs {
		l.end()
	}
	ia.a.barrier()
	for e := range ia.evds {
		e.abort()
	}
	if ia.async != nil && ia.async.ia == ia {
		ia.async.abort()
	}
	for c := range ia.cnos {
		c.abort()
	}
}

// refuseRequests is called when the IA closes. It refuses the connection requests that the consumer of this IA has not
// answered. If no route leads to a requester, the request is dropped.
func (ia *IA) refuseRequests() {
	ours := func(s wire.Service) bool { return s.(wireService).adapter() == ia }
	for _, d := range ia.a.drivers {
		var undecided []*wire.Request
		_ = d.runPolled(func(e *wire.Engine) error {
			undecided = e.Undecided(ours)
			return nil
		})
		for _, r := range undecided {
			r.User.(*CR).finish()
			path, err := d.link.ResolveFrom(r.To, r.From, uint16(r.Port))
			_ = d.runPolled(func(e *wire.Engine) error {
				if err != nil {
					return e.Forget(r)
				}
				return e.Refuse(r, path)
			})
		}
	}
}

// refs counts the references to an object. The object cannot be freed until the count is 0.
type refs struct{ n atomic.Int32 }

func (r *refs) take()      { r.n.Add(1) }
func (r *refs) drop()      { r.n.Add(-1) }
func (r *refs) free() bool { return r.n.Load() == 0 }

package wire

import "github.com/datxdp/datxdp/wire/internal/seq"

// setDefaults fills in what was left out.
func (cfg *ConnConfig) setDefaults() {
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = maxOperation
	}
	if cfg.MaxRDMA == 0 {
		cfg.MaxRDMA = maxOperation
	}
	cfg.MaxRecvIOV, cfg.MaxRequestIOV = max(cfg.MaxRecvIOV, 1), max(cfg.MaxRequestIOV, 1)
	if cfg.MaxReadIOV == 0 {
		cfg.MaxReadIOV = cfg.MaxRequestIOV
	}
	if cfg.MaxWriteIOV == 0 {
		cfg.MaxWriteIOV = cfg.MaxRequestIOV
	}
}

// requestSegs is the most segments that any request has.
func (cfg *ConnConfig) requestSegs() int {
	return max(cfg.MaxRequestIOV, cfg.MaxReadIOV, cfg.MaxWriteIOV)
}

// configure sets all but the work rings.
func (c *Conn) configure(cfg *ConnConfig) {
	c.zone.Store(cfg.Zone)
	c.maxMessage.Store(cfg.MaxMessage)
	c.maxRDMA.Store(cfg.MaxRDMA)
	c.readIOV.Store(int32(cfg.MaxReadIOV))
	c.writeIOV.Store(int32(cfg.MaxWriteIOV))
	c.readIn, c.readOut = cfg.ReadIn, cfg.ReadOut
}

// Reconfigure changes what an idle connection is made of, all but User, NoCredit and the shared queue.
// Posted receives stay posted; those that name memory of another zone than the new one fail with
// StatusLocalProtection when a message comes. ErrPosted if the posted receives would not fit; nothing
// is changed then.
//
// Any goroutine may call it while nobody connects, accepts or resets; posting goes on.
func (c *Conn) Reconfigure(cfg ConnConfig) error {
	if c.State() != Idle {
		return ErrState
	}
	if c.share != nil {
		cfg.MaxRecv, cfg.MaxRecvIOV = 0, 0
	}
	cfg.setDefaults()
	if err := c.rq.resize(cfg.MaxRecv, cfg.MaxRecvIOV, cfg.MaxRecvIOV); err != nil {
		return err
	}
	_ = c.sq.resize(cfg.MaxRequest, cfg.MaxRequestIOV, cfg.requestSegs()) // it is empty: no request is posted while idle
	c.zoneChanged = c.zoneChanged || cfg.Zone != c.zone.Load()
	c.configure(&cfg)
	return nil
}

// NeverReceived reports that no receive was ever posted.
func (c *Conn) NeverReceived() bool { return c.rq.posted.Load() == 0 }

// resize changes depth and segments of a ring that no engine looks at. What is posted stays posted.
func (r *workRing) resize(depth, maxSeg, stride int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	done, posted := seq.Num(r.done.Load()), seq.Num(r.posted.Load())
	if posted.Sub(done) > depth {
		return ErrPosted
	}
	for n := done; n != posted; n++ {
		if int(r.at(n).nseg) > stride {
			return ErrPosted
		}
	}
	if depth == int(r.depth) && stride == r.stride {
		r.maxSeg.Store(int32(maxSeg))
		return nil
	}
	slots, segs, mask, was := r.slots, r.segs, r.mask, r.stride
	r.init(depth, maxSeg, stride)
	r.wins = nil
	if r.args != nil {
		r.args = make([]operands, len(r.slots))
	}
	for n := done; n != posted; n++ {
		from := uint32(n) & mask
		w := r.at(n)
		if *w = slots[from]; w.nseg > 1 {
			copy(r.segments(n, w), segs[int(from)*was:])
		}
	}
	return nil
}

// dropForeignSegments takes the memory of other zones out of the posted receives, if the zone was changed since
// they may have been posted. A message for one fails as if its region were gone.
func (c *Conn) dropForeignSegments() {
	if !c.zoneChanged {
		return
	}
	c.zoneChanged = false
	for n := seq.Num(c.rq.done.Load()); uint32(n) != c.rq.posted.Load(); n++ {
		segs := c.rq.segments(n, c.rq.at(n))
		for i := range segs {
			if r := c.host.regions.find(segs[i].Context); r != nil && r.zone != c.zone.Load() {
				segs[i].Context = 0 // names no region
			}
		}
	}
}

package wire

import "github.com/datxdp/datxdp/wire/internal/seq"

// setDefaults replaces zero values by their defaults.
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

// requestSegs returns the largest number of segments of any kind of request.
func (cfg *ConnConfig) requestSegs() int {
	return max(cfg.MaxRequestIOV, cfg.MaxReadIOV, cfg.MaxWriteIOV)
}

// configure sets every attribute that does not change the size of a work queue.
func (c *Conn) configure(cfg *ConnConfig) {
	c.zone.Store(cfg.Zone)
	c.maxMessage.Store(cfg.MaxMessage)
	c.maxRDMA.Store(cfg.MaxRDMA)
	c.readIOV.Store(int32(cfg.MaxReadIOV))
	c.writeIOV.Store(int32(cfg.MaxWriteIOV))
	c.readIn, c.readOut = uint16(cfg.ReadIn), uint16(cfg.ReadOut)
}

// Reconfigure changes the attributes of an Idle connection to cfg, except User, NoCredit and the shared queue. Posted
// receives stay posted. If the new receive queue has no room for them or for their segments, Reconfigure returns
// ErrPosted and changes nothing. If cfg has a new zone, posted receives may refer to memory of the old zone. Such a
// receive fails with StatusLocalProtection when a message arrives for it.
//
// Any goroutine may call Reconfigure, and other goroutines may post at the same time. The caller makes sure that until
// Reconfigure returns, no goroutine connects, accepts or resets the connection.
func (c *Conn) Reconfigure(cfg ConnConfig) error {
	if c.State() != Idle {
		return ErrState
	}
	if c.srq != nil {
		cfg.MaxRecv, cfg.MaxRecvIOV = 0, 0
	}
	cfg.setDefaults()
	if err := c.rq.resize(cfg.MaxRecv, cfg.MaxRecvIOV, cfg.MaxRecvIOV); err != nil {
		return err
	}
	_ = c.sq.resize(cfg.MaxRequest, cfg.MaxRequestIOV, cfg.requestSegs()) // cannot fail: no requests are posted
	c.zoneChanged = c.zoneChanged || cfg.Zone != c.zone.Load()
	c.configure(&cfg)
	return nil
}

// NeverReceived reports whether no receive was ever posted.
func (c *Conn) NeverReceived() bool { return c.rq.postedCount.Load() == 0 }

// resize changes the depth of a ring and the number of segments for each slot. It copies the posted entries, and
// returns ErrPosted if they do not fit. No engine may use the ring meanwhile.
func (r *workRing) resize(depth, maxSeg, stride int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	done, posted := seq.Num(r.doneCount.Load()), seq.Num(r.postedCount.Load())
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

// dropForeignSegments does nothing if the zone of the connection is unchanged. Otherwise it checks the segments of the
// posted receives, and invalidates each segment with memory of another zone. A message for such a receive fails as if
// the region had been unregistered.
func (c *Conn) dropForeignSegments() {
	if !c.zoneChanged {
		return
	}
	c.zoneChanged = false
	for n := seq.Num(c.rq.doneCount.Load()); uint32(n) != c.rq.postedCount.Load(); n++ {
		segs := c.rq.segments(n, c.rq.at(n))
		for i := range segs {
			if r := c.host.regions.find(segs[i].Context); r != nil && r.zone != c.zone.Load() {
				segs[i].Context = 0 // no region has key 0
			}
		}
	}
}

package dat

// PZ is a protection zone (DAT_PZ_HANDLE). An endpoint accesses only the memory of its own zone. Any goroutine may
// call the methods of a PZ.
type PZ struct {
	consumer
	ia    *IA
	id    uint32
	refs  refs // counts EPs, LMRs, RMRs and SRQs of the zone
	freed bool
}

// PZParam has the parameters of a protection zone (DAT_PZ_PARAM).
type PZParam struct{ IA *IA }

// CreatePZ creates a protection zone (dat_pz_create). It returns ErrInsufficientResources if the adapter has
// IAAttr.MaxPZs zones already.
func (ia *IA) CreatePZ() (*PZ, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if err := ia.a.addObject(HandlePZ); err != nil {
		return nil, err
	}
	p := &PZ{ia: ia, id: ia.a.lastZoneID.Add(1)}
	ia.pzs[p] = struct{}{}
	return p, nil
}

// Query returns the parameters of the zone (dat_pz_query).
func (p *PZ) Query() (PZParam, error) {
	if p == nil {
		return PZParam{}, errHandlePZ
	}
	if err := p.ia.lock(); err != nil {
		return PZParam{}, err
	}
	defer p.ia.mu.Unlock()
	if p.freed {
		return PZParam{}, errHandlePZ
	}
	return PZParam{IA: p.ia}, nil
}

// Free frees the zone (dat_pz_free). It returns ErrInvalidState while the zone has an endpoint, a region or a shared
// receive queue.
func (p *PZ) Free() error {
	if p == nil {
		return errHandlePZ
	}
	if err := p.ia.lock(); err != nil {
		return err
	}
	defer p.ia.mu.Unlock()
	switch {
	case p.freed:
		return errHandlePZ
	case !p.refs.free():
		return fail(with(ErrInvalidState, SubInvalidStatePZInUse), "the protection zone is in use")
	}
	p.freed = true
	delete(p.ia.pzs, p)
	p.ia.a.removeObjects(HandlePZ, 1)
	return nil
}

// usable reports whether new objects of ia may use the zone. The caller has locked ia.
func (p *PZ) usable(ia *IA) bool { return p != nil && p.ia == ia && !p.freed }

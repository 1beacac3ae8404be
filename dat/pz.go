package dat

// PZ is a protection zone (DAT_PZ_HANDLE): endpoints reach the memory of their own zone only.
// All its methods may be called by any goroutine.
type PZ struct {
	consumer
	ia    *IA
	id    uint32
	refs  refs // EPs, LMRs, RMRs and SRQs
	freed bool
}

// PZParam describes a protection zone (DAT_PZ_PARAM).
type PZParam struct{ IA *IA }

// CreatePZ makes a protection zone (dat_pz_create). ErrInsufficientResources when IAAttr.MaxPZs are
// there.
func (ia *IA) CreatePZ() (*PZ, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if err := ia.a.admit(HandlePZ); err != nil {
		return nil, err
	}
	p := &PZ{ia: ia, id: ia.a.zones.Add(1)}
	ia.pzs[p] = struct{}{}
	return p, nil
}

// Query describes the zone (dat_pz_query).
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

// Free ends a zone (dat_pz_free): ErrInvalidState while an endpoint, a region or a shared receive queue
// is in it.
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
	p.ia.a.dismiss(HandlePZ, 1)
	return nil
}

// usable reports that objects of ia may refer to p. ia is locked.
func (p *PZ) usable(ia *IA) bool { return p != nil && p.ia == ia && !p.freed }

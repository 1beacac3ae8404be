package dat

// PZ is a protection zone (DAT_PZ_HANDLE): endpoints reach the memory of their own zone only.
type PZ struct {
	ia    *IA
	id    uint32
	refs  refs // EPs, LMRs and RMRs
	freed bool
}

// CreatePZ makes a protection zone (dat_pz_create).
func (ia *IA) CreatePZ() (*PZ, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	p := &PZ{ia: ia, id: ia.a.zones.Add(1)}
	ia.pzs[p] = struct{}{}
	return p, nil
}

// Free ends a zone (dat_pz_free): ErrInvalidState while an endpoint or a region is in it.
func (p *PZ) Free() error {
	if p == nil {
		return ErrInvalidHandle
	}
	if err := p.ia.lock(); err != nil {
		return err
	}
	defer p.ia.mu.Unlock()
	switch {
	case p.freed:
		return ErrInvalidHandle
	case !p.refs.free():
		return fail(ErrInvalidState, "the protection zone is in use")
	}
	p.freed = true
	delete(p.ia.pzs, p)
	return nil
}

// usable reports that objects of ia may refer to p. ia is locked.
func (p *PZ) usable(ia *IA) bool { return p != nil && p.ia == ia && !p.freed }

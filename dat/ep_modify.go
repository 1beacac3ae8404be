package dat

import "net/netip"

// EPParam are the parameters of an endpoint (DAT_EP_PARAM).
type EPParam struct {
	IA           *IA
	State        EPState
	LocalAddress netip.Addr
	LocalPort    uint64 // port qualifier, which the peer's CR shows
	// RemoteAddress and RemotePort are the peer's while a connection is set up or there; zero otherwise.
	// The port is the connection qualifier that was connected to, or the port qualifier of who asked.
	RemoteAddress netip.Addr
	RemotePort    uint64

	PZ                              *PZ
	RecvEVD, RequestEVD, ConnectEVD *EVD
	SRQ                             *SRQ   // nil without one
	Attr                            EPAttr // as granted
}

// EPMask names parameters of an endpoint (DAT_EP_PARAM_MASK); the values are those of uDAPL 2.0.
type EPMask uint64

// Parameters of an endpoint (DAT_EP_FIELD_...), from ServiceType on those of EPAttr
// (DAT_EP_FIELD_EP_ATTR_...). Comm is of common service points, of which there are none.
const (
	EPFieldIA EPMask = 1 << iota
	EPFieldState
	EPFieldComm
	EPFieldLocalAddress
	EPFieldLocalPort
	EPFieldRemoteAddress
	EPFieldRemotePort
	EPFieldPZ
	EPFieldRecvEVD
	EPFieldRequestEVD
	EPFieldConnectEVD
	EPFieldSRQ
	EPFieldServiceType
	EPFieldMaxMessageSize
	EPFieldMaxRDMASize
	EPFieldQoS
	EPFieldRecvCompletionFlags
	EPFieldRequestCompletionFlags
	EPFieldMaxRecvDTOs
	EPFieldMaxRequestDTOs
	EPFieldMaxRecvIOV
	EPFieldMaxRequestIOV
	EPFieldMaxRDMAReadIn
	EPFieldMaxRDMAReadOut
	EPFieldSRQSoftHW
	EPFieldMaxRDMAReadIOV
	EPFieldMaxRDMAWriteIOV
	EPFieldNumTransportAttr
	EPFieldTransportAttr
	EPFieldNumProviderAttr
	EPFieldProviderAttr

	EPFieldAll EPMask = 1<<iota - 1
)

// Groups of parameters, by the states in which Modify may change them.
const (
	epFixed = EPFieldIA | EPFieldState | EPFieldComm | EPFieldLocalAddress | EPFieldLocalPort |
		EPFieldRemoteAddress | EPFieldRemotePort | EPFieldSRQ
	epTransport = EPFieldNumTransportAttr | EPFieldTransportAttr | EPFieldNumProviderAttr | EPFieldProviderAttr
	epSetUp     = EPFieldAll &^ (epFixed | EPFieldPZ | epTransport)
	epHandles   = EPFieldPZ | EPFieldRecvEVD | EPFieldRequestEVD | EPFieldConnectEVD
)

// Query describes the endpoint (dat_ep_query), in any state.
func (ep *EP) Query() (EPParam, error) {
	if err := ep.lock(); err != nil {
		return EPParam{}, err
	}
	defer ep.mu.Unlock()
	return ep.param(), nil
}

// param is the endpoint's parameters. mu is held.
func (ep *EP) param() EPParam {
	p := EPParam{IA: ep.ia, State: ep.State(), LocalAddress: ep.ia.a.address(), LocalPort: ep.port, PZ: ep.pz,
		RecvEVD: ep.recv, RequestEVD: ep.request, ConnectEVD: ep.connect, SRQ: ep.srq, Attr: ep.attr}
	switch h := ep.hold.Load(); {
	case !remoteDefined.has(p.State):
	case h != nil && h.cr != nil:
		p.RemoteAddress, p.RemotePort = h.cr.req.From.Addr(), h.cr.req.Port
	default:
		p.RemoteAddress, p.RemotePort = ep.remote.addr, ep.remote.port
	}
	return p
}

// set copies the parameters that mask names.
func (p *EPParam) set(mask EPMask, from *EPParam) {
	to, a := &p.Attr, &from.Attr
	for _, f := range []struct {
		field EPMask
		set   func()
	}{
		{EPFieldPZ, func() { p.PZ = from.PZ }},
		{EPFieldRecvEVD, func() { p.RecvEVD = from.RecvEVD }},
		{EPFieldRequestEVD, func() { p.RequestEVD = from.RequestEVD }},
		{EPFieldConnectEVD, func() { p.ConnectEVD = from.ConnectEVD }},
		{EPFieldServiceType, func() { to.ServiceType = a.ServiceType }},
		{EPFieldMaxMessageSize, func() { to.MaxMessageSize = a.MaxMessageSize }},
		{EPFieldMaxRDMASize, func() { to.MaxRDMASize = a.MaxRDMASize }},
		{EPFieldQoS, func() { to.QoS = a.QoS }},
		{EPFieldRecvCompletionFlags, func() { to.RecvCompletionFlags = a.RecvCompletionFlags }},
		{EPFieldRequestCompletionFlags, func() { to.RequestCompletionFlags = a.RequestCompletionFlags }},
		{EPFieldSRQSoftHW, func() { to.SRQSoftHW = a.SRQSoftHW }},
		{EPFieldMaxRecvDTOs, func() { to.MaxRecvDTOs = a.MaxRecvDTOs }},
		{EPFieldMaxRequestDTOs, func() { to.MaxRequestDTOs = a.MaxRequestDTOs }},
		{EPFieldMaxRecvIOV, func() { to.MaxRecvIOV = a.MaxRecvIOV }},
		{EPFieldMaxRequestIOV, func() { to.MaxRequestIOV = a.MaxRequestIOV }},
		{EPFieldMaxRDMAReadIn, func() { to.MaxRDMAReadIn = a.MaxRDMAReadIn }},
		{EPFieldMaxRDMAReadOut, func() { to.MaxRDMAReadOut = a.MaxRDMAReadOut }},
		{EPFieldMaxRDMAReadIOV, func() { to.MaxRDMAReadIOV = a.MaxRDMAReadIOV }},
		{EPFieldMaxRDMAWriteIOV, func() { to.MaxRDMAWriteIOV = a.MaxRDMAWriteIOV }},
	} {
		if mask&f.field != 0 {
			f.set()
		}
	}
}

// Modify changes the parameters that mask names, all of them or none (dat_ep_modify). The zone may be
// changed while EPUnconnected or EPTentativeConnectionPending, dispatchers and attributes also while
// EPReserved or EPPassiveConnectionPending, the completion flags of receives only before the first was
// posted; the rest never. Zero is the default where EPAttr says so, a nil dispatcher none.
//
// Posted receives stay posted: a depth or a limit of segments that they would not fit is
// ErrInvalidState. Those with memory of another zone than the new one fail with DTOLocalProtection when
// a message comes.
//
// Errors: ErrInvalidParameter (mask or value), ErrInvalidHandle (zone or dispatcher),
// ErrModelNotSupported, ErrInvalidState.
func (ep *EP) Modify(mask EPMask, param *EPParam) error {
	if err := ep.usable(); err != nil {
		return err
	}
	switch {
	case mask&^EPFieldAll != 0:
		return fail(ErrInvalidParameter, "no parameters have the bits %#x", uint64(mask&^EPFieldAll))
	case mask&epFixed != 0:
		return fail(ErrInvalidParameter, "the parameters %#x never change", uint64(mask&epFixed))
	case mask == 0:
		return nil
	case param == nil:
		return fail(ErrInvalidParameter, "no parameters are given")
	}
	if err := ep.ia.lock(); err != nil {
		return err
	}
	defer ep.ia.mu.Unlock()
	if err := ep.lock(); err != nil {
		return err
	}
	defer ep.mu.Unlock()
	return ep.modify(mask, param)
}

func (ep *EP) modify(mask EPMask, param *EPParam) error {
	if err := param.handles(ep.ia, mask); err != nil {
		return err
	}
	was := ep.param()
	now := was
	now.set(mask, param)
	now.Attr.setDefaults()
	if err := now.Attr.validate(); err != nil {
		return err
	}
	now.grant()
	if err := ep.mayModify(mask); err != nil {
		return err
	}
	if err := ep.ia.a.refer(&was, &now); err != nil {
		return err
	}
	if err := ep.conn.Reconfigure(ep.config(&now)); err != nil {
		_ = ep.ia.a.refer(&now, &was) // they went together before
		return status(err)
	}
	ep.adopt(&now)
	ep.pz, ep.attr, ep.recv, ep.request, ep.connect = now.PZ, now.Attr, now.RecvEVD, now.RequestEVD, now.ConnectEVD
	return nil
}

// mayModify says whether the state allows the parameters to be changed.
func (ep *EP) mayModify(mask EPMask) error {
	for _, g := range []struct {
		fields EPMask
		call   epCall
	}{{EPFieldPZ, callModifyPZ}, {epSetUp, callModify}, {epTransport, callModifyTransport}} {
		if mask&g.fields == 0 {
			continue
		}
		if err := ep.may(g.call); err != nil {
			return err
		}
	}
	if mask&EPFieldRecvCompletionFlags != 0 && !ep.conn.NeverReceived() {
		return fail(ErrInvalidState, "completion flags of receives change before the first is posted")
	}
	return nil
}

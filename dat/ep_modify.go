package dat

import "net/netip"

// EPParam are the parameters of an endpoint (DAT_EP_PARAM).
type EPParam struct {
	IA    *IA
	State EPState
	// LocalAddress is the address of this host that the peer sees. While there is neither a connection nor an attempt to
	// connect, it is the adapter's address.
	LocalAddress netip.Addr
	LocalPort    uint64 // port qualifier, which the peer's CR shows
	// RemoteAddress and RemotePort are zero while there is neither a connection nor an attempt to connect. On the
	// active side, RemotePort is the requested connection qualifier. On the passive side, RemotePort is the peer's port
	// qualifier.
	RemoteAddress netip.Addr
	RemotePort    uint64
	// PeerKey and PeerName are the public key and the name of the peer in secure mode, and OwnKey is the key of this host
	// that the connection uses, as in CRParam.
	PeerKey  PublicKey
	PeerName string
	OwnKey   PublicKey

	PZ                              *PZ
	RecvEVD, RequestEVD, ConnectEVD *EVD
	SRQ                             *SRQ   // nil: the endpoint has a receive queue of its own
	Attr                            EPAttr // the granted values
}

// EPMask is a set of parameters of an endpoint (DAT_EP_PARAM_MASK); the values are those of uDAPL 2.0.
type EPMask uint64

// Parameters of an endpoint (DAT_EP_FIELD_...). EPFieldServiceType and the fields after it are fields of EPAttr
// (DAT_EP_FIELD_EP_ATTR_...). EPFieldComm belongs to common service points, which this provider does not support.
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

// Groups of parameters. Each parameter belongs to one of four groups; EPFieldPZ is a group of one parameter. The group
// decides in which states of the endpoint Modify may change the parameter:
//
//	epFixed       in no state
//	epTransport   in the states in which callModifyTransport is legal
//	epSetUp       in the states in which callModify is legal
//	EPFieldPZ     in the states in which callModifyPZ is legal
//
// The table legalStates in ep_state.go has these states. The constant epHandles is not one of the groups: it has the
// handles that Modify may change.
const (
	epFixed = EPFieldIA | EPFieldState | EPFieldComm | EPFieldLocalAddress | EPFieldLocalPort |
		EPFieldRemoteAddress | EPFieldRemotePort | EPFieldSRQ
	epTransport = EPFieldNumTransportAttr | EPFieldTransportAttr | EPFieldNumProviderAttr | EPFieldProviderAttr
	epSetUp     = EPFieldAll &^ (epFixed | EPFieldPZ | epTransport)
	epHandles   = EPFieldPZ | EPFieldRecvEVD | EPFieldRequestEVD | EPFieldConnectEVD
)

// Query returns the parameters of the endpoint, in any state (dat_ep_query).
func (ep *EP) Query() (EPParam, error) {
	if err := ep.lock(); err != nil {
		return EPParam{}, err
	}
	defer ep.mu.Unlock()
	return ep.param(), nil
}

// param returns the endpoint's parameters. mu is held.
func (ep *EP) param() EPParam {
	p := EPParam{IA: ep.ia, State: ep.State(), LocalAddress: ep.ia.a.address(), LocalPort: ep.port, PZ: ep.pz,
		RecvEVD: ep.recv, RequestEVD: ep.request, ConnectEVD: ep.connect, SRQ: ep.srq, Attr: ep.attr}
	local := netip.Addr{}
	switch h := ep.holder.Load(); {
	case !remoteDefined.has(p.State):
	case h != nil && h.cr != nil:
		local = h.cr.req.To
		p.RemoteAddress, p.RemotePort = ep.ia.a.zoned(h.cr.req.From.Addr()), h.cr.req.Port
		p.PeerKey, p.PeerName, p.OwnKey = h.cr.req.PeerKey, h.cr.req.PeerName, h.cr.req.OwnKey
	default:
		local = ep.remote.local
		p.RemoteAddress, p.RemotePort = ep.ia.a.zoned(ep.remote.addr), ep.remote.port
		p.PeerKey, p.PeerName, p.OwnKey = ep.remote.peerKey(), ep.remote.name, ep.remote.own
	}
	if local.IsValid() {
		p.LocalAddress = ep.ia.a.zoned(local)
	}
	return p
}

// set copies the parameters in mask from src to p.
func (p *EPParam) set(mask EPMask, src *EPParam) {
	to, a := &p.Attr, &src.Attr
	for _, f := range []struct {
		field EPMask
		set   func()
	}{
		{EPFieldPZ, func() { p.PZ = src.PZ }},
		{EPFieldRecvEVD, func() { p.RecvEVD = src.RecvEVD }},
		{EPFieldRequestEVD, func() { p.RequestEVD = src.RequestEVD }},
		{EPFieldConnectEVD, func() { p.ConnectEVD = src.ConnectEVD }},
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

// Modify changes the parameters whose bits are set in mask to their values in param (dat_ep_modify). If Modify returns
// an error, it has changed nothing. The state of the endpoint decides which parameters may change:
//
//   - The zone: in EPUnconnected and EPTentativeConnectionPending.
//   - The dispatchers and the attributes: in EPUnconnected, EPTentativeConnectionPending, EPReserved and
//     EPPassiveConnectionPending. RecvCompletionFlags may change only before the first receive is posted.
//   - The transport attributes: in EPUnconnected.
//   - Other parameters: never.
//
// An attribute of 0 means the default where EPAttr says so. The events of a nil dispatcher are discarded.
//
// Posted receives stay posted. If there are more posted receives than the new MaxRecvDTOs, or if one of them has more
// segments than the new MaxRecvIOV, Modify returns ErrInvalidState. After a change of the zone, a posted receive may
// have memory of the old zone. Such a receive fails with DTOLocalProtection when a message arrives for it.
//
// Errors: ErrInvalidParameter (mask or value), ErrInvalidHandle (zone or dispatcher), ErrModelNotSupported,
// ErrInvalidState.
func (ep *EP) Modify(mask EPMask, param *EPParam) error {
	if err := ep.usable(); err != nil {
		return err
	}
	switch {
	case mask&^EPFieldAll != 0:
		return fail(ErrInvalidParameter, "the mask has the unknown bits %#x", uint64(mask&^EPFieldAll))
	case mask&epFixed != 0:
		return fail(ErrInvalidParameter, "the parameters %#x cannot be changed", uint64(mask&epFixed))
	case mask == 0:
		return nil
	case param == nil:
		return fail(ErrInvalidParameter, "the mask is not 0, but there are no parameters")
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
	if err := param.checkHandles(ep.ia, mask); err != nil {
		return err
	}
	was := ep.param()
	now := was
	now.set(mask, param)
	now.Attr.setDefaults()
	if err := now.Attr.validate(); err != nil {
		return err
	}
	now.grantSizes()
	if err := ep.mayModify(mask); err != nil {
		return err
	}
	if err := ep.ia.a.updateRefs(&was, &now); err != nil {
		return err
	}
	if err := ep.conn.Reconfigure(ep.config(&now)); err != nil {
		_ = ep.ia.a.updateRefs(&now, &was) // cannot fail: the old streams were compatible before
		return datError(err)
	}
	ep.applyRest(&now)
	ep.pz, ep.attr, ep.recv, ep.request, ep.connect = now.PZ, now.Attr, now.RecvEVD, now.RequestEVD, now.ConnectEVD
	return nil
}

// mayModify returns ErrInvalidState if the parameters in mask cannot change in the current state.
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
		return fail(ErrInvalidState, "RecvCompletionFlags cannot change after the first receive was posted")
	}
	return nil
}

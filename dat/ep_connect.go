package dat

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// completions returns the queues in which d's engine puts the endpoint's completions.
func (ep *EP) completions(d *driver) wire.CompletionQueues {
	i := d.eng.Index()
	return wire.CompletionQueues{Recv: ep.recv.queue(i), Request: ep.request.queue(i), Connect: ep.connect.queue(i),
		Solicited: ep.attr.RecvCompletionFlags == CompletionSolicitedWait}
}

// Connect starts a connection to the service with qualifier qual at the address addr (dat_ep_connect). This may be the
// adapter's own address. The endpoint must be unconnected, and must have a zone and a connect EVD. With a negative
// timeout, the attempt has no time limit. The private data is copied.
//
// The connect EVD gets exactly one event about the attempt. EventEstablished means success; it carries the private data
// that the peer passed to Accept. EventPeerRejected, EventNonPeerRejected, EventTimedOut, EventUnreachable and
// EventDisconnected mean failure; the endpoint is then disconnected, and posted receives have been flushed (see Event).
//
// On an adapter in secure mode, the file of peers says who has the address (see ConnectConfig); ConnectWith can name the
// peer.
//
// Errors: ErrInvalidParameter (no address, timeout 0, more than 256 bytes of private data, in secure mode an address that the file of peers does not
// have), ErrInvalidAddress (no route, or the address of a group), ErrInvalidState, ErrInsufficientResources.
func (ep *EP) Connect(addr netip.Addr, qual ConnQual, timeout time.Duration, private []byte) error {
	return ep.ConnectWith(addr, qual, ConnectConfig{Timeout: timeout, PrivateData: private})
}

// ConnectConfig are the parameters of ConnectWith and DupConnect.
type ConnectConfig struct {
	Timeout     time.Duration // how long to try; a negative time means for ever, 0 is ErrInvalidParameter
	PrivateData []byte        // delivered to the peer in CRParam.PrivateData; copied; at most 256 bytes
	QoS         QoS           // QoSBestEffort; other values are ErrModelNotSupported
	Flags       ConnectFlags  // ConnectMultipathRequired is ErrModelNotSupported
	// PeerPort is the UDP port of the peer. If it is 0, ConnectWith uses Options.PeerPort. For an address of the adapter itself
	// and a qualifier on which this process listens, it uses the port of the adapter.
	// DupConnect uses the port of the other endpoint, and ignores PeerPort.
	PeerPort uint16
	// PeerKey or PeerName says who the peer is, in secure mode only; at most one of them is set. PeerKey is the public key of
	// the peer. PeerName is a name in the file of peers (Security.PeersFile), which has the public key or the shared secret.
	// Without both, the peer is the one with the address in the file of peers: the from= of its line names this very address,
	// and not only a network of it. If there is no such line, and no Security.KnownFile, or more than one line, ConnectWith
	// returns ErrInvalidParameter.
	// DupConnect connects to the peer of the other endpoint, and takes neither.
	PeerKey  PublicKey
	PeerName string
}

// broadcast is the address of all hosts of a network (RFC 919).
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// ConnectWith is Connect with a quality of service and flags (dat_ep_connect).
func (ep *EP) ConnectWith(addr netip.Addr, qual ConnQual, c ConnectConfig) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !addr.IsValid() {
		return fail(ErrInvalidParameter, "the address is not valid")
	}
	if addr = addr.Unmap(); addr.IsMulticast() || addr == broadcast {
		return fail(ErrInvalidAddress, "%v is the address of a group: connect to one host", addr)
	}
	if err := c.check(); err != nil {
		return err
	}
	return ep.dial(remote{addr: addr, port: uint64(qual), udp: c.PeerPort, flags: c.Flags, key: c.PeerKey, name: c.PeerName}, c.Timeout, c.PrivateData)
}

// DupConnect is ConnectWith to the same address and qualifier, and with the same flags, as the connected endpoint dup
// (dat_ep_dup_connect). It returns ErrInvalidParameter if c.Flags is not 0.
func (ep *EP) DupConnect(dup *EP, c ConnectConfig) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if err := dup.usable(); err != nil {
		return err
	}
	if c.Flags != ConnectDefault {
		return fail(ErrInvalidParameter, "connect flags %#x: DupConnect uses the flags of the other endpoint", uint8(c.Flags))
	}
	if c.PeerKey != (PublicKey{}) || c.PeerName != "" {
		return fail(ErrInvalidParameter, "PeerKey or PeerName: DupConnect connects to the peer of the other endpoint")
	}
	if err := c.check(); err != nil {
		return err
	}
	peer, err := dup.dialled()
	if err != nil {
		return err
	}
	return ep.dial(peer, c.Timeout, c.PrivateData)
}

// check checks the parameters that ConnectWith and DupConnect share.
func (c *ConnectConfig) check() error {
	switch {
	case c.Timeout == 0:
		return fail(ErrInvalidParameter, "timeout 0: use a positive timeout, or a negative timeout to try for ever")
	case c.Flags&^connectAll != 0:
		return fail(ErrInvalidParameter, "unknown connect flags %#x", uint8(c.Flags))
	case c.PeerKey != (PublicKey{}) && c.PeerName != "":
		return fail(ErrInvalidParameter, "both PeerKey and PeerName: choose one")
	case c.QoS != QoSBestEffort:
		return fail(ErrModelNotSupported, "quality of service %#x: use QoSBestEffort", uint8(c.QoS))
	case c.Flags&ConnectMultipathRequired != 0:
		return fail(ErrModelNotSupported, "a connection uses one path: do not require several")
	}
	return checkPrivate(c.PrivateData)
}

// dialled returns the peer and the connect flags of a connected endpoint. In other states it returns ErrInvalidState.
func (ep *EP) dialled() (remote, error) {
	if err := ep.lock(); err != nil {
		return remote{}, err
	}
	defer ep.mu.Unlock()
	return ep.remote, ep.may(callDup)
}

// dial starts a connection to a peer, as the active side.
func (ep *EP) dial(peer remote, timeout time.Duration, private []byte) error {
	var n logLine
	defer n.emit()
	if err := ep.lock(); err != nil {
		return err
	}
	defer ep.mu.Unlock()
	if err := ep.may(callConnect); err != nil {
		return err
	}
	if ep.pz == nil || ep.connect == nil {
		return fail(ErrInvalidState, "the endpoint has no protection zone or no connect event dispatcher: set them with Modify")
	}
	peer.qual = peer.port
	requester, err := ep.ia.a.security.identify(&peer)
	if err != nil {
		return err
	}
	d := ep.ia.a.pick()
	path, err := d.link.Resolve(netip.AddrPortFrom(peer.addr, ep.ia.udpPort(peer)), uint16(ep.port))
	if err != nil {
		return datError(err)
	}
	if o, ok := d.link.(link.Originator); ok {
		peer.local = o.Origin(path)
	}
	dial := wire.Dial{Path: path, Host: peer.addr, Qual: peer.port, Port: ep.port, Timeout: timeout, Private: private,
		Completions: ep.completions(d), Requester: requester}
	if err := ep.startConnection(d, peer, func(e *wire.Engine) error { return e.Connect(ep.conn, dial) }); err != nil {
		return err
	}
	n = logLine{ep.ia.log, slog.LevelDebug, "dat: connecting", []any{"peer", peer.addr, "qualifier", peer.qual, "queue", d.eng.Index()}}
	return nil
}

// udpPort returns the UDP port of a peer. A request for a service of this process must not go to another process that has
// the default port of the address.
func (ia *IA) udpPort(peer remote) uint16 {
	switch {
	case peer.udp != 0:
		return peer.udp
	case peer.addr == ia.a.attr.Address && ia.a.host.Serves(peer.port):
		return ia.a.port
	}
	return ia.peerPort
}

// startConnection connects the endpoint to peer with the engine of d. It makes d the driver of the endpoint, and runs
// start in that engine. If start succeeds, no service point and no connection request holds the endpoint any longer. mu
// is held.
func (ep *EP) startConnection(d *driver, peer remote, start func(*wire.Engine) error) error {
	ep.changeDriver(d)
	ep.drv.Store(d)
	ep.told.Store(false)
	if err := d.runPolled(start); err != nil {
		return datError(err)
	}
	ep.remote = peer
	ep.clearHolder()
	return nil
}

// changeDriver prepares the change of the endpoint's driver to d. In each dispatcher of the endpoint, it moves the
// queued events of the old engine to the front, so that consumers take these events before the events of the new
// engine.
func (ep *EP) changeDriver(d *driver) {
	if was := ep.drv.Load(); was != nil && was != d {
		for _, e := range []*EVD{ep.recv, ep.request, ep.connect} {
			e.gatherFrom(was.eng.Index())
		}
	}
}

// Disconnect ends a connection, or an attempt to connect (dat_ep_disconnect). With CloseGraceful, outstanding requests
// complete first. Each side gets one EventDisconnected. On a disconnected endpoint, Disconnect does nothing. In the
// states before an attempt to connect (EPUnconnected, EPReserved, EPPassiveConnectionPending,
// EPTentativeConnectionPending), it returns ErrInvalidState.
func (ep *EP) Disconnect(flags CloseFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if flags > CloseGraceful {
		return fail(ErrInvalidParameter, "unknown disconnect flags %d", flags)
	}
	return ep.inEngine(callDisconnect, func(e *wire.Engine) error { return e.Disconnect(ep.conn, flags == CloseGraceful) })
}

// Reset makes a disconnected endpoint unconnected (dat_ep_reset). Completions that the consumer has not taken stay in
// their EVDs. On an unconnected endpoint, Reset does nothing, and receives stay posted. If a completion of the endpoint
// waits because another queue of the adapter still accesses an invalidated RMR, Reset waits too.
func (ep *EP) Reset() error {
	for {
		var err error
		failed := ep.inEngine(callReset, func(e *wire.Engine) error { err = e.Reset(ep.conn); return err })
		if err != wire.ErrHeld {
			return failed
		}
		ep.ia.a.barrier() // the events of the endpoint, which wait for other engines, come before those of its next connection
	}
}

// inEngine runs f in the engine of the connection. It returns ErrInvalidState if the endpoint's state does not allow
// the call c.
func (ep *EP) inEngine(c epCall, f func(*wire.Engine) error) error {
	if err := ep.lock(); err != nil {
		return err
	}
	defer ep.mu.Unlock()
	if err := ep.may(c); err != nil {
		return err
	}
	d := ep.drv.Load()
	if d == nil {
		return nil // no connection was ever started
	}
	return datError(d.runPolled(f))
}

package dat

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// completions returns the queues of d's engine that get the endpoint's completions.
func (ep *EP) completions(d *driver) wire.CompletionQueues {
	i := d.eng.Index()
	return wire.CompletionQueues{Recv: ep.recv.queue(i), Request: ep.request.queue(i), Connect: ep.connect.queue(i),
		Solicited: ep.attr.RecvCompletionFlags == CompletionSolicitedWait}
}

// Connect starts a connection to a service of an adapter, which may be this one (dat_ep_connect). The endpoint must
// be unconnected and have a zone and a connect EVD. That EVD gets exactly one event: EventEstablished with the
// private data of the accept, or EventPeerRejected, EventNonPeerRejected, EventTimedOut, EventUnreachable or
// EventDisconnected. After any event but EventEstablished the endpoint is disconnected. A negative timeout waits for
// ever. The private data is copied.
//
// Errors: ErrInvalidParameter (no address, timeout 0, more than 256 bytes of private data), ErrInvalidAddress (no
// route), ErrInvalidState, ErrInsufficientResources.
func (ep *EP) Connect(to netip.Addr, qual ConnQual, timeout time.Duration, private []byte) error {
	return ep.ConnectWith(to, qual, ConnectConfig{Timeout: timeout, PrivateData: private})
}

// ConnectConfig are the parameters of ConnectWith and DupConnect.
type ConnectConfig struct {
	Timeout     time.Duration // how long to try; negative means for ever, 0 is ErrInvalidParameter
	PrivateData []byte        // for the peer's CR.Query; it is copied; at most 256 bytes
	QoS         QoS           // any but QoSBestEffort is ErrModelNotSupported
	Flags       ConnectFlags  // ConnectMultipathRequired is ErrModelNotSupported
}

// ConnectWith is Connect with a quality of service and flags (dat_ep_connect).
func (ep *EP) ConnectWith(to netip.Addr, qual ConnQual, c ConnectConfig) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !to.IsValid() {
		return fail(ErrInvalidParameter, "no address to connect to")
	}
	if err := c.check(); err != nil {
		return err
	}
	return ep.dial(remote{addr: to.Unmap(), port: uint64(qual), flags: c.Flags}, c.Timeout, c.PrivateData)
}

// DupConnect is ConnectWith to the same address and qualifier, and with the same flags, as the endpoint dup
// (dat_ep_dup_connect). dup must be connected. It returns ErrInvalidParameter if c has flags.
func (ep *EP) DupConnect(dup *EP, c ConnectConfig) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if err := dup.usable(); err != nil {
		return err
	}
	if c.Flags != ConnectDefault {
		return fail(ErrInvalidParameter, "connect flags %#x: they are those of the endpoint that is duplicated", uint8(c.Flags))
	}
	if err := c.check(); err != nil {
		return err
	}
	to, err := dup.dialled()
	if err != nil {
		return err
	}
	return ep.dial(to, c.Timeout, c.PrivateData)
}

// check checks the parameters that ConnectWith and DupConnect share.
func (c *ConnectConfig) check() error {
	switch {
	case c.Timeout == 0:
		return fail(ErrInvalidParameter, "timeout 0: wait for some time, or for ever with a negative one")
	case c.Flags&^connectAll != 0:
		return fail(ErrInvalidParameter, "connect flags %#x", uint8(c.Flags))
	case c.QoS != QoSBestEffort:
		return fail(ErrModelNotSupported, "quality of service %#x: use QoSBestEffort", uint8(c.QoS))
	case c.Flags&ConnectMultipathRequired != 0:
		return fail(ErrModelNotSupported, "there is one path: do not require more")
	}
	return checkPrivate(c.PrivateData)
}

// dialled returns the peer and the connect flags of a connected endpoint.
func (ep *EP) dialled() (remote, error) {
	if err := ep.lock(); err != nil {
		return remote{}, err
	}
	defer ep.mu.Unlock()
	return ep.remote, ep.may(callDup)
}

// dial starts the active side of a connection.
func (ep *EP) dial(to remote, timeout time.Duration, private []byte) error {
	var n note
	defer n.write()
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
	to.qual = to.port
	d := ep.ia.a.pick()
	path, err := d.link.Resolve(netip.AddrPortFrom(to.addr, ep.ia.peerPort), uint16(ep.port))
	if err != nil {
		return status(err)
	}
	dial := wire.Dial{Path: path, Host: to.addr, Qual: to.port, Port: ep.port, Timeout: timeout, Private: private, Completions: ep.completions(d)}
	if err := ep.take(d, to, func(e *wire.Engine) error { return e.Connect(ep.conn, dial) }); err != nil {
		return err
	}
	n = note{ep.ia.log, slog.LevelDebug, "dat: connecting", []any{"peer", to.addr, "qualifier", to.qual, "queue", d.eng.Index()}}
	return nil
}

// take makes d the driver of the endpoint and runs f in d's engine. f starts a connection with the given peer. mu is
// held.
func (ep *EP) take(d *driver, peer remote, f func(*wire.Engine) error) error {
	ep.move(d)
	ep.drv.Store(d)
	if err := d.do(f); err != nil {
		return status(err)
	}
	ep.remote = peer
	ep.release()
	return nil
}

// move prepares the change of the endpoint's driver to d. It keeps the events that the old engine has queued before
// those of the new one.
func (ep *EP) move(d *driver) {
	if was := ep.drv.Load(); was != nil && was != d {
		for _, e := range []*EVD{ep.recv, ep.request, ep.connect} {
			e.gather(was.eng.Index())
		}
	}
}

// Disconnect ends a connection or the attempt to make one (dat_ep_disconnect). With CloseGraceful, outstanding
// requests complete first. Both sides get one EventDisconnected. On a disconnected endpoint the call does nothing. It
// returns ErrInvalidState if no connection was started.
func (ep *EP) Disconnect(flags CloseFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if flags > CloseGraceful {
		return fail(ErrInvalidParameter, "disconnect flags %d", flags)
	}
	return ep.inEngine(callDisconnect, func(e *wire.Engine) error { return e.Disconnect(ep.conn, flags == CloseGraceful) })
}

// Reset makes a disconnected endpoint unconnected (dat_ep_reset). Completions that the consumer has not taken stay in
// their EVDs. On an unconnected endpoint the call does nothing: its receives stay posted.
func (ep *EP) Reset() error {
	return ep.inEngine(callReset, func(e *wire.Engine) error { return e.Reset(ep.conn) })
}

// inEngine runs f in the engine of the connection, if the state allows the call.
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
		return nil // it was never connected
	}
	return status(d.do(f))
}

package dat

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// completions are the queues of an engine that the endpoint's completions go to.
func (ep *EP) completions(d *driver) wire.CompletionQueues {
	i := d.eng.Index()
	return wire.CompletionQueues{Recv: ep.recv.queue(i), Request: ep.request.queue(i), Connect: ep.connect.queue(i),
		Solicited: ep.attr.RecvCompletionFlags == CompletionSolicitedWait}
}

// Connect begins the active side of a connection to a service at an address (dat_ep_connect), this
// adapter's own included. The endpoint must be unconnected and have a zone and a connect EVD, where
// exactly one event follows: EventEstablished with the private data of the accept, or
// EventPeerRejected, EventNonPeerRejected, EventTimedOut, EventUnreachable or EventDisconnected. After
// any but the first the endpoint is disconnected. A negative timeout waits for ever.
//
// Errors: ErrInvalidParameter (no address, timeout 0, too much private data), ErrInvalidAddress (no
// route), ErrInvalidState, ErrInsufficientResources.
func (ep *EP) Connect(to netip.Addr, qual ConnQual, timeout time.Duration, private []byte) error {
	return ep.ConnectWith(to, qual, ConnectConfig{Timeout: timeout, PrivateData: private})
}

// ConnectConfig is how to connect.
type ConnectConfig struct {
	Timeout     time.Duration // how long to ask; negative: for ever; 0 is ErrInvalidParameter
	PrivateData []byte        // for the peer's CR.Query; it is copied
	QoS         QoS           // ErrModelNotSupported for others than QoSBestEffort
	Flags       ConnectFlags  // ErrModelNotSupported for ConnectMultipathRequired
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

// DupConnect connects to the same address, qualifier and with the same flags as another endpoint, which
// must be connected (dat_ep_dup_connect). Otherwise it is ConnectWith. ErrInvalidParameter for flags of its own.
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

// check checks what all ways to connect have.
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

// dialled is whom a connected endpoint is connected with.
func (ep *EP) dialled() (remote, error) {
	if err := ep.lock(); err != nil {
		return remote{}, err
	}
	defer ep.mu.Unlock()
	return ep.remote, ep.may(callDup)
}

// dial begins the active side of a connection.
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

// take makes d the driver of the endpoint and has f take up a connection with to there. mu is held.
func (ep *EP) take(d *driver, to remote, f func(*wire.Engine) error) error {
	ep.move(d)
	ep.drv.Store(d)
	if err := d.do(f); err != nil {
		return status(err)
	}
	ep.remote = to
	ep.release()
	return nil
}

// move keeps the events of an endpoint in order that had another driver than d.
func (ep *EP) move(d *driver) {
	if was := ep.drv.Load(); was != nil && was != d {
		for _, e := range []*EVD{ep.recv, ep.request, ep.connect} {
			e.gather(was.eng.Index())
		}
	}
}

// Disconnect ends a connection or the attempt to make one (dat_ep_disconnect). With CloseGraceful,
// requests that are outstanding may finish first. One EventDisconnected follows on both sides; none if
// the endpoint is disconnected already. ErrInvalidState where no connection was begun.
func (ep *EP) Disconnect(flags CloseFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if flags > CloseGraceful {
		return fail(ErrInvalidParameter, "disconnect flags %d", flags)
	}
	return ep.steer(callDisconnect, func(e *wire.Engine) error { return e.Disconnect(ep.conn, flags == CloseGraceful) })
}

// Reset makes a disconnected endpoint unconnected (dat_ep_reset); completions that were not taken
// stay on their EVDs. Of an unconnected one it changes nothing: receives stay posted.
func (ep *EP) Reset() error {
	return ep.steer(callReset, func(e *wire.Engine) error { return e.Reset(ep.conn) })
}

// steer has f act on the connection in its engine, if the state allows the call.
func (ep *EP) steer(c epCall, f func(*wire.Engine) error) error {
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

package dat

import (
	"net/netip"

	"github.com/datxdp/datxdp/internal/identity"
	"github.com/datxdp/datxdp/wire"
)

// grant implements wire.Grant: what the current file of peers grants to the peer of one connection.
type grant struct {
	security *security
	id       identity.ID
	account  *identity.Account
	inbound  *inbound // what the peer has requested; nil if this host has requested the connection
	halfOpen bool
}

// inbound is the request of a peer for a connection.
type inbound struct {
	from    netip.Addr
	service uint64
}

var _ wire.Grant = (*grant)(nil)

// accessRights maps the word memory= of a peer.
var accessRights = [...]wire.Rights{
	identity.NoAccess:    0,
	identity.ReadAccess:  wire.RemoteRead,
	identity.WriteAccess: wire.RemoteRead | wire.RemoteWrite | wire.RemoteAtomic,
}

// Rights implements wire.Grant.
func (g *grant) Rights() (wire.Rights, error) {
	p, now := g.security.store.Current().Policy.Find(g.id), g.security.now()
	v := p.Alive(now)
	if g.inbound != nil {
		v = p.Permit(g.inbound.from, g.inbound.service, now)
	}
	if v != identity.Permitted {
		return 0, denials[v]
	}
	return accessRights[p.Limits().Memory], nil
}

// MayHold implements wire.Grant.
func (g *grant) MayHold(n int) bool { return g.account.MayHold(n) }

// Hold implements wire.Grant.
func (g *grant) Hold(n int) { g.account.Hold(n) }

// Confirm implements wire.Grant.
func (g *grant) Confirm() {
	if g.halfOpen {
		g.halfOpen = false
		g.account.Confirm()
	}
}

// Guess implements wire.Grant.
func (g *grant) Guess() { g.account.Guess(g.security.now()) }

// Release implements wire.Grant.
func (g *grant) Release() {
	g.Confirm()
	if g.inbound != nil {
		g.account.Disconnect()
	}
}

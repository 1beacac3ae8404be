package dat

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/datxdp/datxdp/internal/claim"
	"github.com/datxdp/datxdp/wire"
)

// servicePoint is a PSP or an RSP.
type servicePoint interface {
	deliver(*wire.Request) bool
	adapter() *IA
}

// wireService implements wire.Service for a servicePoint. PSP and RSP do not implement wire.Service themselves: their
// method Arrive would then be an exported method of an exported type.
type wireService struct{ servicePoint }

// Arrive implements wire.Service.
func (s wireService) Arrive(r *wire.Request) bool { return s.deliver(r) }

var (
	_ servicePoint = (*PSP)(nil)
	_ servicePoint = (*RSP)(nil)
)

// qualifiers has what an adapter knows of connection qualifiers, beside wire.Host.
type qualifiers struct {
	tried  atomic.Uint32  // counts those that CreatePSPAny has tried
	claims *claim.Address // those that no other process may have; nil: other processes have their own
}

// claim prepares the claims of qualifiers at the device's address, on the network namespace of the calling thread. Clients
// look for a qualifier at DefaultPort, so of the processes that have DefaultPort or a port in its place, one may have the
// qualifier. A given port is different: clients are given it too.
func (dev *device) claim(o Options) {
	local := dev.links[0].Local().Addr()
	if o.Port != 0 && o.Port != DefaultPort || !local.IsValid() {
		return
	}
	var err error
	if dev.claims, err = claim.Open(local); err != nil && dev.logLine.logger == nil {
		dev.logLine = logLine{o.logger(), slog.LevelDebug, "dat: other processes may listen on the qualifiers of this one", []any{
			"address", local, "reason", err}}
	}
}

// listen claims a qualifier, and lets s listen on it.
func (a *adapter) listen(qual ConnQual, s servicePoint) error {
	if a.host.Serves(uint64(qual)) {
		return ErrConnQualInUse
	}
	switch err := a.quals.claims.Claim(uint64(qual)); {
	case errors.Is(err, claim.ErrInUse):
		return fail(ErrConnQualInUse, "another process of this host listens on qualifier %d of %v", qual, a.attr.Address)
	case err != nil:
		return fail(ErrInsufficientResources, "qualifier %d of %v: %v", qual, a.attr.Address, err)
	}
	err := datError(a.host.Listen(uint64(qual), wireService{s}))
	if err != nil {
		a.quals.claims.Release(uint64(qual))
	}
	return err
}

// unlisten ends a listen that has succeeded.
func (a *adapter) unlisten(qual ConnQual) {
	a.host.Unlisten(uint64(qual))
	a.quals.claims.Release(uint64(qual))
}

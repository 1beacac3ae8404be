package dat

import (
	"cmp"
	"slices"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/wire"
)

// The limit of the option "silence" is that of the protocol: this does not compile if they differ.
var _ = [1]struct{}{}[wire.MaxGiveUp-ianame.MaxSilence]

// override replaces options in o by the options that adapter name n has.
func (o *Options) override(n ianame.Name) error {
	if err := n.Check(); err != nil {
		return fail(ErrInvalidParameter, "opening %s: %v", n.Device, err)
	}
	o.Port = cmp.Or(n.Port, o.Port)
	o.PeerPort = cmp.Or(n.PeerPort, o.PeerPort)
	o.Queues = cmp.Or(n.Queues, o.Queues)
	o.Limits.GiveUp = cmp.Or(n.Silence, o.Limits.GiveUp)
	o.NoOffload = o.NoOffload || n.NoOffload
	o.Security.KeyFile = cmp.Or(n.Key, o.Security.KeyFile)
	o.Security.PeersFile = cmp.Or(n.Peers, o.Security.PeersFile)
	o.Security.KnownFile = cmp.Or(n.Known, o.Security.KnownFile)
	o.Security.Announce = o.Security.Announce || n.Announce
	o.Security.Insecure = o.Security.Insecure || n.Insecure
	if i := slices.Index(progressNames[:], n.Progress); i >= 0 {
		o.Progress = Progress(i)
	}
	return nil
}

package dat

import (
	"cmp"
	"slices"
	"time"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/wire"
)

// minSilence is the minimum of the option "silence" in an adapter name. With a shorter time, connections would break
// whenever a host is busy.
const minSilence = 100 * time.Millisecond

// override replaces options in o by the options that adapter name n has.
func (o *Options) override(n ianame.Name) error {
	if s := n.Silence; s != 0 && (s < minSilence || s > wire.MaxGiveUp) {
		return fail(ErrInvalidParameter, "opening %s: silence=%v is not a time from %v to %v", n.Device, s, minSilence, wire.MaxGiveUp)
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

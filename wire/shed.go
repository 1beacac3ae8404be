package wire

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// shedding makes the link drop the Connects of an address that sends far more of them than it gets answers. Otherwise they
// would fill the receive buffer of the kernel, which packets of connections share. The link drops for shedTime; if the
// flood goes on then, it is noticed again within shedPeriod.
type shedding struct {
	link    link.Shedder // nil if the link cannot drop
	from    netip.Addr   // whose Connects are counted
	count   int          // in this period
	ends    Time         // of this period
	resumes Time         // when the link stops to drop; 0: it does not drop
}

func newShedding(l link.Link) (s shedding) {
	s.link, _ = l.(link.Shedder)
	return s
}

// note counts a Connect that is ignored.
func (s *shedding) note(from netip.Addr, now Time) {
	switch {
	case s.link == nil || s.resumes != 0:
		return
	case from != s.from || now >= s.ends:
		s.from, s.count, s.ends = from, 0, now.Add(shedPeriod)
	}
	if s.count++; s.count >= shedCount {
		s.link.Shed(from, byte(proto.Connect), proto.TypeMask)
		s.resumes, s.count = now.Add(shedTime), 0
	}
}

// check ends the dropping when its time is over.
func (s *shedding) check(now Time) {
	if s.resumes != 0 && now >= s.resumes {
		s.link.Shed(netip.Addr{}, 0, 0)
		s.resumes = 0
	}
}

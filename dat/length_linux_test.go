package dat

import (
	"fmt"
	"math"
	"syscall"
	"testing"
)

// A length that a triplet cannot express is refused, and not cut to 32 bits: by every post, by a bind and by the calls
// that synchronize memory.
func TestOverlongSegments(t *testing.T) {
	a, b := newHosts(t, newSim(t), Options{})
	x, y := pair(a, b, nil)
	mem := mapped(t, 6<<30, syscall.PROT_READ|syscall.PROT_WRITE)
	big := must(a.ia.CreateLMR(mem, a.pz, MemAll))(t)
	defer func() { ok(t, big.Free()) }()
	rmr := must(a.pz.CreateRMR())(t)
	far := RMRTriplet{y.lmr.RMRContext(), y.lmr.Address(), math.MaxUint64}
	for _, n := range []int{-1, math.MinInt, math.MinInt + 8, -1 << 32, 8 - 1<<32, 1 << 32, 1<<32 + 8, 5 << 30, math.MaxInt} {
		s := big.Segment(0, n)
		_, bind := rmr.Bind(x.EP, Binding{LMR: big, Segment: s, Priv: remoteRights}, 1, 0)
		for what, err := range map[string]error{
			"send": x.PostSend([]LMRTriplet{s}, 1, 0), "receive": x.PostRecv([]LMRTriplet{s}, 1, 0),
			"write": x.PostRDMAWrite([]LMRTriplet{s}, 1, far, 0), "write with immediate data": x.PostRDMAWriteImm([]LMRTriplet{s}, 1, far, 1, 0),
			"read": x.PostRDMARead([]LMRTriplet{s}, 1, y.lmr.Remote(0, 8), 0), "fetch and add": x.PostFetchAdd(1, s, 1, y.lmr.Remote(0, 8), 0),
			"bind": bind, "sync read": a.ia.SyncRDMARead([]LMRTriplet{s}), "sync write": a.ia.SyncRDMAWrite([]LMRTriplet{s}),
		} {
			wants(t, fmt.Sprintf("%s of %d bytes", what, n), err, ErrInvalidParameter)
		}
	}
	proves(x, y)
	x.still()
}

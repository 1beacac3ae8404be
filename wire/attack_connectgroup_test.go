package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Attack 31: one process sends groups of Connects from its own address, more than the engine can answer. In a Poll, the
// answers to one address are bounded, and the rest of its packets that belong to no connection are dropped before their
// checksum is computed. Another address still gets its Challenge, and established connections work.
func TestAttack31ConnectGroups(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		for name, kind := range map[string]proto.Type{"Connect": proto.Connect, "Connect with a cookie": proto.Connect, "Data": proto.Data} {
			t.Run(name, func(t *testing.T) {
				s := newModeSiege(t, keys)
				r := randSource(3)
				const group, groups = 60, 200
				start, before := s.net.Now(), s.victim.eng.stats
				s.unmoved(name, func() {
					for range groups {
						for range group {
							h := proto.Header{Type: kind, PSN: seq.Num(r.Uint32()), CID: r.Uint32() &^ slotMask, Tag: r.Uint32()}
							var body []byte
							if kind == proto.Connect {
								h.CID, h.Tag = 0, 0
								hi := proto.Hello{CID: r.Uint32() | 1, Tag: r.Uint32() | 1, MTU: 1472, Window: minPeerWindow, Qual: service}
								if name != "Connect" {
									hi.Cookie = r.Uint64()
								}
								body = helloOf(&hi)
							}
							s.send(&h, body)
						}
						s.land()
					}
				}, s.cb)
				now := s.victim.eng.stats
				periods := int(time.Duration(s.net.Now()-start)/replyPeriod) + 2
				if most := periods * replyBurst / 2; s.out.packets > most {
					t.Errorf("%d answers in %v, want %d at most", s.out.packets, time.Duration(s.net.Now()-start), most)
				}
				ignored := now.ConnRequestsDropped - before.ConnRequestsDropped + now.UnknownConnection - before.UnknownConnection
				if s.out.packets > 0 && ignored < group*groups/2 {
					t.Errorf("%d packets dropped of %d", ignored, group*groups)
				}
				s.finish()
			})
		}
	})
}

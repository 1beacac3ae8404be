package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// Attacks 15 and 16: the peer uses RDMA with a key, a right or a range that it does not have. Nothing may be written or
// read, and the peer's connection must break, as it would for an honest program with the same error.
func TestAttack15And16RemoteAccess(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		const base, size = 0x4000, 64
		type target struct {
			key  uint32
			addr uint64
			n    uint32
		}
		for _, tc := range []struct {
			name   string
			zone   uint32
			rights Rights // 0: all
			aim    func(s *siege, r *Region) target
			read   bool // reads only
		}{
			{"zone of another connection", 2, 0, func(_ *siege, r *Region) target { return target{r.remote, base, 8} }, false},
			{"after unregister", 1, 0, func(s *siege, r *Region) target {
				s.victim.host.Unregister(r)
				return target{r.remote, base, 8}
			}, false},
			{"after unregister and reuse", 1, 0, func(s *siege, r *Region) target {
				s.victim.host.Unregister(r)
				if _, err := s.victim.host.Register(make([]byte, size), base, 1, allRights); err != nil {
					s.t.Fatal(err)
				}
				return target{r.remote, base, 8}
			}, false},
			{"one above the key", 1, 0, func(_ *siege, r *Region) target { return target{r.remote + 1, base, 8} }, false},
			{"one below the key", 1, 0, func(_ *siege, r *Region) target { return target{r.remote - 1, base, 8} }, false},
			{"the key before it was permuted", 1, 0, func(_ *siege, r *Region) target { return target{r.local, base, 8} }, false},
			{"no key", 1, 0, func(*siege, *Region) target { return target{0, base, 8} }, false},
			{"no remote right", 1, LocalRead | LocalWrite, func(s *siege, r *Region) target {
				return target{s.victim.host.keys.Encrypt(r.local), base, 8}
			}, false},
			{"the other remote right", 1, LocalRead | LocalWrite | RemoteRead, func(_ *siege, r *Region) target { return target{r.remote, base, 8} }, false},
			{"one byte before", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base - 1, 8} }, false},
			{"one byte after", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base + size - 7, 8} }, false},
			{"right behind", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base + size, 1} }, false},
			{"one byte too long", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base, size + 1} }, false},
			{"address 0", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, 0, 8} }, false},
			{"sum wraps to the base", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, ^uint64(0) - 3, 8} }, false},
			{"last address", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, ^uint64(0), 1} }, false},
			{"sum wraps 32 bits", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base + 8, ^uint32(0) - 3} }, true},
			{"the longest read", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base, ^uint32(0)} }, true},
			{"a read of the sign bit", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base, 1 << 31} }, true},
			{"the longest read that may be", 1, 0, func(_ *siege, r *Region) target { return target{r.remote, base, maxOperation} }, true},
		} {
			for _, read := range []bool{false, true} {
				if tc.read && !read {
					continue
				}
				t.Run(map[bool]string{false: "write/", true: "read/"}[read]+tc.name, func(t *testing.T) {
					s := newModeSiege(t, keys)
					cv, _ := s.join(plain)
					arena := bytes.Repeat([]byte{0xaa}, 3*size) // the region is its middle third
					rights := tc.rights
					if rights == 0 {
						rights = allRights
					} else if read && rights&RemoteRead != 0 {
						rights = rights&^RemoteRead | RemoteWrite
					}
					r, err := s.victim.host.Register(arena[size:2*size:2*size], base, tc.zone, rights)
					if err != nil {
						t.Fatal(err)
					}
					if good := s.victim.memory(8); tc.zone == 1 { // a valid access first, so that targetCache has the region
						h := s.header(cv, proto.Data)
						s.strike(&h, writeChunk(proto.Last, 8, good.remote, good.base))
					}
					to := tc.aim(s, r)
					body := readChunk(to.key, to.addr, to.n, 0)
					if !read {
						body = writeChunk(proto.Last, int(to.n), to.key, to.addr)
					}
					why, blamed := proto.ReasonAccess, uint64(1)
					if to.n > maxOperation {
						why, blamed = proto.ReasonProtocol, 0
					}
					before := s.victim.eng.Stats().ProtectionErrors
					h := s.header(cv, proto.Data)
					s.strike(&h, body)
					if !bytes.Equal(arena, bytes.Repeat([]byte{0xaa}, 3*size)) {
						t.Error("memory was written")
					}
					if got := s.victim.eng.Stats().ProtectionErrors - before; got != blamed {
						t.Errorf("%d protection errors, want %d", got, blamed)
					}
					s.broken(cv, why)
					if s.out.types[proto.Data] != 0 {
						t.Error("data left for the foe")
					}
					s.finish()
				})
			}
		}
		t.Run("zero length", func(t *testing.T) {
			s := newModeSiege(t, keys)
			cv, _ := s.join(plain)
			arena := bytes.Repeat([]byte{0xaa}, 64)
			if _, err := s.victim.host.Register(arena, base, 2, allRights); err != nil {
				t.Fatal(err)
			}
			for _, body := range [][]byte{
				writeChunk(proto.Last, 0, 12345, base), writeChunk(0, 0, 0, ^uint64(0)), readChunk(12345, ^uint64(0), 0, 0),
			} {
				h := s.header(cv, proto.Data)
				s.strike(&h, body)
			}
			if cv.State() != Established || !bytes.Equal(arena, bytes.Repeat([]byte{0xaa}, 64)) {
				t.Errorf("state %d, memory % x", cv.State(), arena)
			}
			s.drop(cv)
			s.finish()
		})
	})
}

// Attack 15: a region is unregistered while the victim serves a read of it. The rest of the region must not be read.
func TestAttack15UnregisterWhileRead(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		cv, _ := s.join(plain)
		big := s.victim.memory(1 << 20)
		h := s.header(cv, proto.Data)
		s.strike(&h, readChunk(big.remote, big.base, 1<<20, 0))
		sent := s.out.types[proto.Data]
		if sent == 0 || sent > maxWindow {
			t.Fatalf("%d packets of the answer, want some and a window at most", sent)
		}
		s.victim.host.Unregister(big.Region)
		h = s.header(cv, proto.Ack)
		h.Ack = cv.sent.Nxt
		s.strike(&h, nil)
		if got := s.out.types[proto.Data]; got != sent {
			t.Errorf("%d more packets after the region had gone", got-sent)
		}
		s.broken(cv, proto.ReasonAccess)
		s.finish()
	})
}

// A read that fails because its region was unregistered meanwhile must not count as a wrong key.
func TestUnregisterWhileReadIsNoGuess(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		for range 2 * freeGuesses {
			cv, _ := s.join(plain)
			big := s.victim.memory(1 << 20)
			h := s.header(cv, proto.Data)
			s.strike(&h, readChunk(big.remote, big.base, 1<<20, 0))
			s.victim.host.Unregister(big.Region)
			h = s.header(cv, proto.Ack)
			h.Ack = cv.sent.Nxt
			s.strike(&h, nil)
			s.broken(cv, proto.ReasonAccess)
			s.foe.down = false
			s.run(10 * time.Millisecond)
			for s.foe.connect.Len() > 0 {
				s.foe.connect.Pop(new(Completion))
			}
		}
		if n := len(s.victim.eng.keyGuesses.addrs); n != 0 {
			t.Errorf("%d addresses are taken for guessers", n)
		}
		s.finish()
	})
}

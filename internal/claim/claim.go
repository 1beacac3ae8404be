package claim

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// ErrInUse is the error of Claim if another process has the qualifier.
var ErrInUse = errors.New("another process of this host listens on the qualifier")

// errRace is the error of an attempt that met an attempt of another process.
var errRace = errors.New("another process claims the qualifier now")

// Address has the claims of this process to qualifiers of an address. With a nil *Address, Claim succeeds and the other
// methods do nothing.
type Address struct {
	addr  netip.Addr          // not an IPv4-mapped one; its zone is a number
	space *space              // nil after Close; guarded by mu
	held  map[uint64]struct{} // claimed qualifiers; guarded by mu
}

// Open returns an Address without claims. Several Addresses of a process for the same address do not exclude each other.
// The error wraps errors.ErrUnsupported if the system has no such locks.
func Open(addr netip.Addr) (*Address, error) {
	mu.Lock()
	defer mu.Unlock()
	s, err := openSpace()
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return &Address{addr: numbered(addr.Unmap()), space: s, held: make(map[uint64]struct{})}, nil
}

// numbered replaces the zone of a link-local address, which may be a name or a number, by the number of the interface.
func numbered(addr netip.Addr) netip.Addr {
	if ifi, err := net.InterfaceByName(addr.Zone()); err == nil {
		return addr.WithZone(strconv.Itoa(ifi.Index))
	}
	return addr
}

// Claim claims a qualifier. It returns ErrInUse if another process has it, or if a has it already. If several processes
// claim a free qualifier at the same time, one of them gets it.
func (a *Address) Claim(qual uint64) (err error) {
	if a == nil {
		return nil
	}
	for range attempts {
		if err = a.try(qual); err != errRace {
			return err
		}
		time.Sleep(rand.N(longestPause))
	}
	return ErrInUse
}

// The method try is one attempt to claim a qualifier. It returns errRace if another process has claimed it meanwhile.
func (a *Address) try(qual uint64) error {
	mu.Lock()
	defer mu.Unlock()
	if a.space == nil {
		return nil
	}
	if _, mine := a.held[qual]; mine {
		return ErrInUse
	}
	if err := a.space.take(a.record(qual)); err != nil {
		return err
	}
	a.held[qual] = struct{}{}
	return nil
}

// Release gives a claimed qualifier up.
func (a *Address) Release(qual uint64) {
	if a == nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	if _, mine := a.held[qual]; mine {
		delete(a.held, qual)
		a.space.give(a.record(qual))
	}
}

// Close gives all claims up. Afterwards Claim succeeds, and claims nothing.
func (a *Address) Close() error {
	if a == nil {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	if a.space == nil {
		return nil
	}
	for qual := range a.held {
		a.space.give(a.record(qual))
	}
	clear(a.held)
	s := a.space
	a.space = nil
	return s.leave()
}

// record returns the offset of the record that stands for a qualifier.
func (a *Address) record(qual uint64) int64 {
	name := fmt.Appendf(nil, "datxdp/%s/%d", a.addr, qual)
	sum := sha256.Sum256(name)
	return int64(binary.BigEndian.Uint64(sum[:]) >> 2) // offset + length must not overflow
}

package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/speck"
)

// Widths of the parts of a connection ID, most significant part first: engine, generation, slot. Of a
// region key, before it is permuted: generation, slot.
const (
	engineBits = 8
	genBits    = 7
	slotBits   = 17
	regionBits = 20
)

// Host is what the engines of one adapter share: the secrets of keys and cookies, the registered
// memory, and the services. Its methods may be called by any goroutine.
type Host struct {
	rand    io.Reader
	limits  Limits
	keys    *speck.Key
	secret  [32]byte // of cookies
	regions regionTable
	peers   peers

	mu       sync.Mutex
	services map[uint64]Service
	engines  []*Engine
}

// Service receives the connection requests for one connection qualifier.
type Service interface {
	// Arrive is called by the engine's owner with a new request; it must not block. False refuses
	// the request: the backlog is full. The request may be answered with Accept or Reject later,
	// not within the call.
	Arrive(*Request) bool
}

// NewHost makes a host. Randomness for verification tags, packet numbers and keys comes from random:
// crypto/rand in production, a seeded reader in simulation.
func NewHost(random io.Reader, limits Limits) (*Host, error) {
	limits.setDefaults()
	h := &Host{rand: random, limits: limits, services: make(map[uint64]Service)}
	var seed [40]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return nil, fmt.Errorf("wire: reading randomness: %w", err)
	}
	h.keys = speck.New(binary.BigEndian.Uint64(seed[:8]))
	copy(h.secret[:], seed[8:])
	return h, nil
}

// NewEngine makes the engine of one more link of the adapter. All engines are made before traffic starts.
func (h *Host) NewEngine(l link.Link, now Time) (*Engine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.engines) == maxEngines {
		return nil, fmt.Errorf("wire: more than %d links on one adapter", maxEngines)
	}
	e := newEngine(h, l, len(h.engines), now)
	if e.maxPacket < minPacket {
		return nil, fmt.Errorf("wire: the link carries packets of %d bytes, and a connection needs %d: raise its MTU", e.maxPacket, minPacket)
	}
	h.engines = append(h.engines, e)
	return e, nil
}

// Listen makes s the service of a connection qualifier.
func (h *Host) Listen(qual uint64, s Service) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, used := h.services[qual]; used {
		return ErrInUse
	}
	h.services[qual] = s
	return nil
}

// Unlisten ends the service of a qualifier. Requests that were delivered stay valid.
func (h *Host) Unlisten(qual uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.services, qual)
}

func (h *Host) service(qual uint64) Service {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.services[qual]
}

// newTag draws a verification tag, which is never 0.
func (h *Host) newTag() uint32 {
	for {
		if tag := h.random32(); tag != 0 {
			return tag
		}
	}
}

// random32 is a number that nobody can guess.
func (h *Host) random32() uint32 {
	var b [4]byte
	if _, err := io.ReadFull(h.rand, b[:]); err != nil {
		panic("wire: the source of randomness failed: " + err.Error()) // crypto/rand never does
	}
	return binary.BigEndian.Uint32(b[:])
}

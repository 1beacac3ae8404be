package wire

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/slotkey"
	"github.com/datxdp/datxdp/wire/internal/speck"
)

// Widths of the bit fields of a connection ID, from the most significant field: engine, generation, slot. A plain
// region key (see regionTable) consists of a generation and a slot. This slot has regionBits bits.
const (
	engineBits = 8
	genBits    = 7
	slotBits   = 17
	regionBits = slotkey.SlotBits
)

// Host is the state that the engines of one adapter share. Any goroutine may call its methods.
type Host struct {
	rand     io.Reader
	limits   Limits
	keys     *speck.Key
	secret   [32]byte // of cookies
	clock    func() Time
	switches func() uint64
	regions  regionTable
	peers    peers

	security  *Security                             // nil in plaintext mode
	keyLimits seal.Limits                           // limits of keys; zero: those of the protocol
	newCipher func(key []byte) (cipher.AEAD, error) // cipher of the packets; nil: that of the protocol

	firstEngine int // number of the engine with index 0 in connection IDs

	mu       sync.Mutex
	services map[uint64]Service
	engines  []*Engine
}

// Service receives the connection requests for a connection qualifier.
type Service interface {
	// Arrive delivers a new request. It returns false if the backlog is full; the engine then rejects the request. The
	// engine's owner calls Arrive, so Arrive must not block. The service answers with Accept or Reject later, not
	// within Arrive.
	Arrive(*Request) bool
}

// NewHost makes a host. It reads verification tags, initial packet numbers and keys from the reader random, which is
// crypto/rand in production and a seeded reader in simulation.
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

// SetClock sets the clock that measures how long replies without a connection take to send. Without a clock, their time
// is not limited. The clock has to agree with the times that Poll gets. switches returns how often the calling thread has
// lost its processor to others; nil means that this is unknown. SetClock must be called before NewEngine.
func (h *Host) SetClock(now func() Time, switches func() uint64) { h.clock, h.switches = now, switches }

// SetFirstEngine sets the number of the first engine in connection IDs; the other engines follow. Without it the first
// engine has the number 0. Adapters that receive at one port of a host have engine numbers of their own, which say whose
// packet it is. SetFirstEngine must be called before NewEngine.
func (h *Host) SetFirstEngine(number uint8) { h.firstEngine = int(number) }

// NewEngine makes an engine for another link of the adapter. All engines must be made before traffic starts.
func (h *Host) NewEngine(l link.Link, now Time) (*Engine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.firstEngine+len(h.engines) == maxEngines {
		return nil, fmt.Errorf("wire: more than %d links on one adapter", maxEngines)
	}
	e := newEngine(h, l, len(h.engines), now)
	if e.maxPacket < minPacket {
		return nil, fmt.Errorf("wire: the link carries packets of %d bytes, and a connection needs %d: raise its MTU", e.maxPacket, minPacket)
	}
	h.engines = append(h.engines, e)
	return e, nil
}

// Listen registers s as the service of a connection qualifier.
func (h *Host) Listen(qual uint64, s Service) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, used := h.services[qual]; used {
		return ErrInUse
	}
	h.services[qual] = s
	return nil
}

// Unlisten removes the service of a qualifier. Requests that were delivered to the service stay valid.
func (h *Host) Unlisten(qual uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.services, qual)
}

// Serves reports whether a qualifier has a service.
func (h *Host) Serves(qual uint64) bool { return h.service(qual) != nil }

func (h *Host) service(qual uint64) Service {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.services[qual]
}

// newTag returns a random verification tag, which is never 0.
func (h *Host) newTag() uint32 {
	for {
		if tag := h.random32(); tag != 0 {
			return tag
		}
	}
}

// random32 returns an unpredictable number.
func (h *Host) random32() uint32 {
	var b [4]byte
	if _, err := io.ReadFull(h.rand, b[:]); err != nil {
		panic("wire: the source of randomness failed: " + err.Error()) // crypto/rand never does
	}
	return binary.BigEndian.Uint32(b[:])
}

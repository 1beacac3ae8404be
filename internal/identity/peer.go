package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/datxdp/datxdp/internal/handshake"
)

// ID names a peer for as long as it has its key: also after a Reload, and in every process. It is no secret, and can be
// compared.
type ID struct {
	// Form tells how the peer proves who it is: IK by its private key, NNpsk0 by a shared secret.
	Form handshake.Form
	// Key is the public key, or a hash of the shared secret.
	Key [handshake.KeySize]byte
}

// PublicID returns the ID of the peer with a public key.
func PublicID(k handshake.PublicKey) ID { return ID{handshake.IK, k} }

// secretLabel makes the IDs of shared secrets different from other hashes of them.
const secretLabel = "datxdp shared secret"

func secretID(k *handshake.SharedKey) ID {
	b := append([]byte(secretLabel), k[:]...)
	defer clear(b)
	return ID{handshake.NNpsk0, sha256.Sum256(b)}
}

// Access is what a peer may do with memory of this host for which it has a remote key.
type Access uint8

// The accesses. Each includes those before it.
const (
	NoAccess Access = iota
	ReadAccess
	WriteAccess
)

// Limits are what the connections of a peer may have. A number of 0 is no limit of the peer's own.
type Limits struct {
	Connections int    // at the same time
	HalfOpen    int    // half-open requests at the same time
	Rate        int    // connection requests a second
	Bytes       int64  // memory that this host holds for the connections
	Memory      Access // RDMA access
}

// Verdict is the answer to a connection request. Its zero value is a refusal.
type Verdict uint8

// The verdicts. The first that applies decides.
const (
	Unknown      Verdict = iota // nobody has this key
	Expired                     // the peer's time is over
	WrongAddress                // the peer may not connect from this address
	WrongService                // the peer may not connect to this service
	Permitted
	Verdicts // number of verdicts
)

// String returns the verdict as a word, for logs and metrics.
func (v Verdict) String() string {
	return [Verdicts]string{"unknown", "expired", "address", "service", "permitted"}[v]
}

// services is a range of connection qualifiers.
type services struct{ first, last uint64 }

// Peer is a line of the file of peers.
type Peer struct {
	id       ID
	line     int // its number in the file
	name     string
	from     []netip.Prefix // nil: every address
	services []services     // nil: all
	expires  time.Time      // zero: never
	limits   Limits
	secret   *secret // nil if the peer has a public key
}

// secret is a shared secret until it is dropped.
type secret struct {
	mu      sync.Mutex
	key     handshake.SharedKey
	dropped bool
}

// ID returns the ID of the peer.
func (p *Peer) ID() ID { return p.id }

// Line returns the number of the peer's line in the file.
func (p *Peer) Line() int { return p.line }

// Expires returns the time from which the peer may not connect, or the zero Time for never.
func (p *Peer) Expires() time.Time { return p.expires }

// Limits returns the limits of the peer.
func (p *Peer) Limits() Limits { return p.limits }

// String returns the name of the peer or, if it has none, the first bytes of its ID. It returns "" for a nil Peer.
func (p *Peer) String() string {
	switch {
	case p == nil:
		return ""
	case p.name != "":
		return p.name
	}
	return hex.EncodeToString(p.id.Key[:4])
}

// Alive decides whether this host may have a connection with the peer at a time: the verdict is Permitted, Expired, or
// Unknown for a nil Peer.
func (p *Peer) Alive(now time.Time) Verdict {
	switch {
	case p == nil:
		return Unknown
	case !p.expires.IsZero() && !now.Before(p.expires):
		return Expired
	}
	return Permitted
}

// Permit decides whether the peer may connect from an address to a service at a time. A nil Peer is Unknown.
func (p *Peer) Permit(from netip.Addr, service uint64, now time.Time) Verdict {
	v := p.Alive(now)
	switch {
	case v != Permitted:
		return v
	case !p.mayConnectFrom(from):
		return WrongAddress
	case !p.mayConnectTo(service):
		return WrongService
	}
	return Permitted
}

func (p *Peer) mayConnectFrom(a netip.Addr) bool {
	return p.from == nil || slices.ContainsFunc(p.from, contains(a))
}

// has reports whether from= names an address, and not only a network of it.
func (p *Peer) has(a netip.Addr) bool {
	in := contains(a)
	return slices.ContainsFunc(p.from, func(prefix netip.Prefix) bool { return prefix.IsSingleIP() && in(prefix) })
}

// contains returns a function that reports whether a prefix contains an address.
func contains(a netip.Addr) func(netip.Prefix) bool {
	a = a.Unmap().WithZone("") // a prefix contains no address with a zone
	return func(prefix netip.Prefix) bool { return prefix.Contains(a) }
}

func (p *Peer) mayConnectTo(service uint64) bool {
	for _, s := range p.services {
		if s.first <= service && service <= s.last {
			return true
		}
	}
	return p.services == nil
}

// Secret copies the shared secret to k. It returns false if the peer has a public key, or if its secret was dropped. The
// caller wipes k.
func (p *Peer) Secret(k *handshake.SharedKey) bool {
	if p.secret == nil {
		return false
	}
	p.secret.mu.Lock()
	defer p.secret.mu.Unlock()
	*k = p.secret.key
	return !p.secret.dropped
}

// drop overwrites the shared secret.
func (p *Peer) drop() {
	if p.secret == nil {
		return
	}
	p.secret.mu.Lock()
	defer p.secret.mu.Unlock()
	p.secret.key.Wipe()
	p.secret.dropped = true
}

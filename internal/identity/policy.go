package identity

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/internal/handshake"
)

// Policy is the file of peers. It does not change, but a Reload or Close of the Store drops its shared secrets. The zero
// Policy knows nobody.
type Policy struct {
	peers  []*Peer // in the order of the file
	byID   map[ID]*Peer
	byName map[string]*Peer
	shared map[handshake.KeyID]*Peer // those with a shared secret
}

// Find returns the peer with an ID, or nil.
func (p *Policy) Find(id ID) *Peer { return p.byID[id] }

// FindName returns the peer with a name, or nil. A name that several lines have is that of a host with several keys; then
// it is the peer of the first line.
func (p *Policy) FindName(name string) *Peer { return p.byName[name] }

// FindAddress returns the peer that has an address: its from= names this very address. A prefix does not count, because a
// peer that may connect from a network could take over any address of it, and be taken for a server there. If no line
// has the address, or several, FindAddress returns their number instead; of several lines with the same name it takes the
// first.
func (p *Policy) FindAddress(a netip.Addr) (peer *Peer, n int) {
	for _, q := range p.peers {
		switch {
		case !q.has(a):
		case n == 1 && peer.name != "" && peer.name == q.name: // another key of the same host
		default:
			peer = q
			n++
		}
	}
	if n != 1 {
		return nil, n
	}
	return peer, 1
}

// Peers returns the peers in the order of the file. The caller does not change the slice.
func (p *Policy) Peers() []*Peer { return p.peers }

// FindShared returns the peer whose shared secret has a key ID, or nil.
func (p *Policy) FindShared(id handshake.KeyID) *Peer { return p.shared[id] }

// parsePeers reads the text of a file of peers.
func parsePeers(file string, text []byte) (*Policy, error) {
	if err := checkEncoding(text); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	p := &Policy{nil, map[ID]*Peer{}, map[string]*Peer{}, map[handshake.KeyID]*Peer{}}
	for n, fields := range lines(text) {
		peer, err := parsePeer(fields)
		peer.line = n
		if err == nil {
			err = p.add(peer)
		}
		if err != nil {
			peer.drop()
			p.drop()
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return p, nil
}

// add adds a peer.
func (p *Policy) add(peer *Peer) error {
	if p.byID[peer.id] != nil {
		return errors.New("the peer's key is in the file already: remove one of the lines")
	}
	var key handshake.SharedKey
	defer key.Wipe()
	if peer.Secret(&key) {
		if p.shared[key.ID()] != nil {
			return errors.New("another secret has the same key ID: make a new one with datbench keygen --psk")
		}
		p.shared[key.ID()] = peer
	}
	if peer.name != "" && p.byName[peer.name] == nil {
		p.byName[peer.name] = peer
	}
	p.byID[peer.id] = peer
	p.peers = append(p.peers, peer)
	return nil
}

// NextExpiry returns the first time after now at which the time of a peer is over, or the zero Time.
func (p *Policy) NextExpiry(now time.Time) (next time.Time) {
	for _, peer := range p.peers {
		if e := peer.expires; e.After(now) && (next.IsZero() || e.Before(next)) {
			next = e
		}
	}
	return next
}

// drop overwrites all shared secrets.
func (p *Policy) drop() {
	for _, peer := range p.peers {
		peer.drop()
	}
}

// removed returns the peers that next does not have.
func (p *Policy) removed(next *Policy) (gone []*Peer) {
	for _, peer := range p.peers {
		if next.Find(peer.id) == nil {
			gone = append(gone, peer)
		}
	}
	return gone
}

// parsePeer reads the words of a line. After an error, the peer may have a secret that is to be dropped.
func parsePeer(fields [][]byte) (*Peer, error) {
	p := &Peer{limits: Limits{Memory: WriteAccess}}
	if err := p.parseKey(fields[0]); err != nil {
		return p, err
	}
	seen := map[string]bool{}
	for _, f := range fields[1:] {
		key, value, found := bytes.Cut(f, []byte("="))
		if err := p.parseWord(string(key), string(value), found, seen); err != nil {
			return p, err
		}
	}
	return p, nil
}

// secretPrefix begins a shared secret.
const secretPrefix = "psk:"

// parseKey reads the first word of a line.
func (p *Peer) parseKey(text []byte) error {
	var b [handshake.KeySize]byte
	defer clear(b[:])
	if secretText, ok := bytes.CutPrefix(text, []byte(secretPrefix)); ok {
		if err := decode(&b, secretText); err != nil {
			return fmt.Errorf("not a shared secret: %w", err)
		}
		p.secret = &secret{key: b}
		p.id = secretID(&p.secret.key)
		return nil
	}
	if err := decodePublic(&b, text); err != nil {
		return fmt.Errorf("a line begins with a public key, or psk: and a secret: %w", err)
	}
	p.id = PublicID(b)
	return nil
}

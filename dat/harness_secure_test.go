package dat

import (
	"net/netip"
	"testing"
	"time"
)

// credentials are the key file and the file of peers of a host that may connect to itself and to hosts with the same key.
type credentials struct {
	files Security
	key   PublicKey
}

func newCredentials(t testing.TB) *credentials {
	k := newKeyring(t)
	return &credentials{k.options("all", k.line("all", "")).Security, k.publicOf("all")}
}

// sharedKeys puts adapters into secure mode that the networks of tests open without a key, and connects their endpoints with
// its key. It is nil for plaintext mode.
var sharedKeys *credentials

// useSharedKeys sets sharedKeys until the end of the test.
func useSharedKeys(t testing.TB) {
	t.Helper()
	sharedKeys = newCredentials(t)
	t.Cleanup(func() { sharedKeys = nil })
}

// complete returns the options for an adapter. c may be nil.
func (c *credentials) complete(o Options) Options {
	if c != nil && o.Security == (Security{}) {
		o.Security = c.files
	}
	return o
}

// dial returns the arguments of a connect. c may be nil.
func (c *credentials) dial(cc ConnectConfig) ConnectConfig {
	if c != nil && cc.PeerKey == (PublicKey{}) && cc.PeerName == "" {
		cc.PeerKey = c.key
	}
	return cc
}

// Connect is EP.Connect for either mode.
func (p *point) Connect(addr netip.Addr, qual ConnQual, timeout time.Duration, private []byte) error {
	return p.ConnectWith(addr, qual, ConnectConfig{Timeout: timeout, PrivateData: private})
}

// ConnectWith is EP.ConnectWith for either mode.
func (p *point) ConnectWith(addr netip.Addr, qual ConnQual, c ConnectConfig) error {
	return p.EP.ConnectWith(addr, qual, sharedKeys.dial(c))
}

package proto

import "net/netip"

// Form is the pattern of a handshake of the Noise Protocol Framework.
type Form uint8

// Forms.
const (
	FormIK     Form = 1 // Noise_IK_25519_AESGCM_SHA256: the requester knows the server's public key
	FormNNpsk0 Form = 2 // Noise_NNpsk0_25519_AESGCM_SHA256: both ends know a secret
)

// Cipher is the cipher of the packets of a connection.
type Cipher uint8

// CipherAES128GCM is AES-128-GCM, the only cipher.
const CipherAES128GCM Cipher = 0

// Sizes in bytes.
const (
	PublicKeySize = 32
	KeyIDSize     = 4
	// SealSize is the size of the tag at the end of a sealed packet, and of the encrypted payload of a Noise message.
	SealSize = 16

	NoiseFixed = 1 + KeyIDSize // form and cipher, key ID
	headIK     = PublicKeySize + PublicKeySize + SealSize
	headOther  = PublicKeySize
	// MaxNoiseSize is the size of the largest value of the Noise option.
	MaxNoiseSize = NoiseFixed + headIK
)

// Sealed reports whether packets of this type are sealed on a secure connection. A Closed without a connection is not.
func (t Type) Sealed() bool { return t.Established() || t == Close || t == Closed }

// Noise is the value of the Noise option of a Hello. The private data of the Hello is the rest of the Noise message.
type Noise struct {
	Form   Form
	Cipher Cipher
	KeyID  [KeyIDSize]byte // selects the server's key or the shared secret
	Head   []byte          // first part of the Noise message; after Parse a slice of the packet
}

// HeadSize returns the size in bytes of the head in a packet of type t. It returns 0 if the form is unknown, or if t has
// no Noise option.
func (f Form) HeadSize(t Type) int {
	switch {
	case f != FormIK && f != FormNNpsk0:
		return 0
	case t == Connect && f == FormIK:
		return headIK
	case t == Connect, t == Accept, t == Reject:
		return headOther
	default:
		return 0
	}
}

// Append appends the value of the option to b.
func (n *Noise) Append(b []byte) []byte {
	b = append(b, byte(n.Cipher)<<4|byte(n.Form))
	b = append(b, n.KeyID[:]...)
	return append(b, n.Head...)
}

// Parse reads the value of the Noise option in a packet of type t. It reports false if it does not know the form or the
// cipher, or if the value has the wrong length.
func (n *Noise) Parse(value []byte, t Type) bool {
	if len(value) < NoiseFixed {
		return false
	}
	n.Form, n.Cipher = Form(value[0]&0xf), Cipher(value[0]>>4)
	n.Head = value[NoiseFixed:]
	copy(n.KeyID[:], value[1:])
	size := n.Form.HeadSize(t)
	return size > 0 && len(n.Head) == size && n.Cipher == CipherAES128GCM
}

// prologueLabel begins the prologue of both patterns.
const prologueLabel = "datxdp secure v2"

// AppendPrologue appends the prologue of the Noise handshake to b: prologueLabel, and the Connect from its first byte to
// the end of its options, with the head of the Noise option zeroed. FormNNpsk0 adds the 16 bytes of the address to which
// the requester sends: the handshake of a shared secret does not prove which of its holders answers, and it may be the
// requester itself (RFC 9257 §4.1). Parse must have accepted the Hello and the Noise option of the Connect.
func AppendPrologue(b, connect []byte, server netip.Addr) []byte {
	shared := false
	options := optionsOf(connect[HeaderSize:])
	b = append(b, prologueLabel...)
	b = append(b, connect[:HeaderSize+HelloSize+len(options)]...)
	options = b[len(b)-len(options):]
	for len(options) > 0 {
		kind, value := options[0], options[optionHead:optionHead+int(options[1])]
		if kind == optionNoise {
			shared = Form(value[0]&0xf) == FormNNpsk0
			clear(value[NoiseFixed:])
		}
		options = options[optionHead+len(value):]
	}
	if shared {
		address := server.As16()
		b = append(b, address[:]...)
	}
	return b
}

// Package identity reads who a host is and whom it talks to in secure mode: the private keys of this host from a key
// file, and the peers that may connect, with their rights and limits, from a file of peers. Decision 0016 has the
// reasons.
//
// # Key file
//
// A line has one X25519 private key: 32 random bytes in base64. The first key is used to connect, all are accepted. The
// rest of a line after # is a comment. The key file may also be in $CREDENTIALS_DIRECTORY, or its text in DATXDP_KEY;
// Files has the order.
//
// # File of peers
//
// A line has the public key of a peer, or psk: and a secret that both hosts share, and then words in any order:
//
//	name=web-1                in logs and metrics
//	from=10.0.0.0/8,fd00::1   its addresses; without, every address
//	services=7,100-199,0x4d   connection qualifiers, or ports, that it may connect to; without, all
//	memory=none|read|write    RDMA access to memory of this host; write, the default, includes read
//	expires=2027-01-31        from this time on it is refused; a date is 0:00 UTC, a time has the form of RFC 3339
//	connections=100           most connections
//	half-open=8               most half-open requests
//	rate=50                   most connection requests a second
//	bytes=64M                 most memory that this host holds for its connections; at least 8K
//
// A missing limit means that only the limits of its address apply.
//
// # Contract
//
// Ordering. Store.Reload replaces keys and peers together, or after an error neither.
//
// Ownership. The package overwrites its copies of secrets: the text of a file when it is parsed, and shared secrets when
// a Reload or Close drops them. Copies inside crypto/ecdh stay until the memory is used again. No error quotes a key or
// a secret.
//
// Threading. Any goroutine may call the functions and methods, except that a Store has one caller of Reload and Close at
// a time. Keys and Policy do not change. The package has no goroutine and reads no clock.
package identity

// Package handshake makes and reads the two messages of a Noise handshake. They give both ends of a connection the same
// secrets, and show each end which key the other one has. The patterns are Noise_IK_25519_AESGCM_SHA256 and
// Noise_NNpsk0_25519_AESGCM_SHA256. Decision 0016 says where the messages lie in Connect and Accept.
//
//	requester                server
//	Request   -- message 1 -->  Respond
//	Finish    <-- message 2 --  Reply
//
// Ordering. A Requester finishes once; until then a message that does not authenticate changes nothing. A Responder
// replies once.
//
// Ownership. The package copies what it keeps of its arguments, except a SharedKey and a PrivateKey, which do not
// change. It overwrites its copies of secrets when it no longer needs them. The copies inside flynn/noise, crypto/ecdh
// and crypto/aes stay until the memory is used again.
//
// Threading. The package has no goroutine and reads no clock. Any goroutine may call the functions. A Requester or
// Responder has one caller at a time.
package handshake

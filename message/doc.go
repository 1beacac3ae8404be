// Package message sends messages and requests over a net.Conn, usually a stream of package stream.
//
// A stream has no boundaries. This package adds them, and it matches responses with requests:
//
//   - [Conn] sends messages with Send and receives them with Recv.
//   - [Client] sends requests with Call. Any number of goroutines may have a request outstanding.
//   - [Server] accepts connections and answers requests with a function. The context of a request knows its peer
//     ([PeerOf]). [Server.Shutdown] ends a server without interrupting requests.
//
// Over a stream.Conn of package stream, each message is copied once from the ring into which the peer writes, because
// the peer can change the ring at any time. Over any other net.Conn, for example TCP or TLS, the package works too.
//
// On the wire, each message is a header of 8 bytes and the payload. The header has the length of the payload in bytes (32
// bits) and a tag (32 bits), both little-endian. The upper two bits of the tag are the kind: message, request, response
// or error. The other bits match a response, or an error, with its request.
package message

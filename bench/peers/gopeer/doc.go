// Package gopeer has the peers that are written in Go: TCP of package net, without and with TLS, quic-go and gRPC, and services that run over
// kernel TCP and over streams: gRPC, HTTP, redis and raft. Each has a server, and a client that measures round trips,
// messages per second, or bytes per second.
//
// Ordering: a server serves before its clients start; each client has its own connection. Ownership: Serve and Run
// close what they open. Threading: one goroutine uses a connection.
package gopeer

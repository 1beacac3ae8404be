// Package gopeer holds the peers that are written in Go: TCP of package net, quic-go and gRPC, each as
// a server and as a client that measures round trips, messages a second, or bytes a second.
//
// Ordering: a server serves before its clients start; each client has a connection of its own.
// Ownership: what Serve and Run open they close. Threading: a connection is one goroutine's.
package gopeer

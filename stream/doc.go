// Package stream carries streams of bytes over DAT: a Conn is a net.Conn, and a Listener is a net.Listener. The package
// is new. Its API may change until a release lists it.
//
//	l, err := stream.Listen(ctx, "xdp:eth0", 7000)                  // the server
//	c, err := stream.Dial(ctx, "xdp:eth0", "10.0.0.1:7000")         // the client
//
// # Flow of bytes
//
// Each end of a stream has two rings of registered memory. Write copies bytes into the send ring, and the stream moves
// them into the receive ring of the peer with RDMA writes. The immediate data of an RDMA write tells the peer that bytes
// have arrived, and Read copies them out. The caller's memory is free when a call returns.
//
// The window is the number of bytes that the peer's receive ring has room for. When the peer's Read has freed room, a
// credit message from the peer enlarges the window. Rings begin with 4 KiB and grow while the stream fills them.
//
// # Batching
//
// A Write is sent at once while fewer than 8 messages wait for a credit. Further bytes are collected in the send ring
// until the next credit arrives (Nagle's algorithm, RFC 896, with 8 messages in place of one segment).
//
// # Progress
//
// No goroutine belongs to a Conn. A goroutine that blocks in Read or Write drives the adapter and handles the events of
// its connection. If bytes wait in the send ring while no goroutine blocks, a goroutine of the adapter sends them.
package stream

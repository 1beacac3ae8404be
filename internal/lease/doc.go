// Package lease lets a privileged daemon lend interfaces to programs without privilege. A lease is one or several bound
// AF_XDP sockets and the sealed memory that their frames are in. A client holds a lease by a connection to the daemon's
// Unix socket; the lease ends when the connection does. Packets do not pass through the daemon.
//
// The package has the protocol, both of its ends, and the policy. Sockets, programs and maps are behind the interface
// Kernel. docs/SHARING.md describes the protocol.
package lease

//go:build !unix

package ends

import "net"

// spinning returns the connection itself: reads block on this system.
func spinning(c net.Conn) net.Conn { return c }

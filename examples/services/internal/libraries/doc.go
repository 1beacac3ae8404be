// Package libraries tests libraries that multiplex or encrypt a net.Conn over streams: SSH, smux and yamux. It has tests
// only.
package libraries

package bpf

// Counters counts the frames that reached the program since it was attached, summed over all processors. Each frame is
// counted in exactly one field.
type Counters struct {
	// Redirected frames went to the socket of their queue. The socket may have dropped some of them; its own statistics
	// count that.
	Redirected uint64
	// PassedOther frames are for another port, address, protocol, Ethernet address or VLAN.
	PassedOther uint64
	// PassedNoSocket frames are for our port, but their queue has no socket.
	PassedNoSocket uint64
	// PassedFragment frames are IP fragments of UDP packets, for any port.
	PassedFragment uint64
	// PassedOptions frames have IPv4 options or IPv6 extension headers before UDP, for any port.
	PassedOptions uint64
	// PassedMalformed frames have headers or lengths that contradict each other or the frame size.
	PassedMalformed uint64
}

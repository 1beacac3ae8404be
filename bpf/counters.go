package bpf

// Counters says what became of the frames that reached the program since it was attached, summed
// over all processors. Every frame is in exactly one of them.
type Counters struct {
	// Redirected frames were handed to the socket of their queue. The socket may still have
	// dropped them: its own statistics say.
	Redirected uint64
	// PassedOther frames are none of ours: another port, address or protocol, another Ethernet address, another VLAN.
	PassedOther uint64
	// PassedNoSocket frames are for our port, on a queue without a socket.
	PassedNoSocket uint64
	// PassedFragment frames are IP fragments of UDP packets, of whatever port.
	PassedFragment uint64
	// PassedOptions frames have IPv4 options or IPv6 extension headers before UDP, of whatever
	// port.
	PassedOptions uint64
	// PassedMalformed frames have headers or lengths that contradict each other or the frame.
	PassedMalformed uint64
}

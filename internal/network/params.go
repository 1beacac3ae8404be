package network

import "time"

// Costs of a host, from a profile of an engine over AF_XDP on one processor of 3 GHz.
const (
	pollCost   = 200 * time.Nanosecond // one poll
	packetCost = 150 * time.Nanosecond // one packet, received or sent
	// costJitter is the largest random addition to the cost of a poll. Without it hosts with equal work stay in step.
	costJitter = 100 * time.Nanosecond
)

const (
	// packetOverhead is the part of a full packet that is not payload of an RDMA write: header, chunk header, trailer.
	packetOverhead = 52
	// wireOverhead is the size of the Ethernet (with FCS), IPv4 and UDP headers.
	wireOverhead = 46
	// payload1500 and payload9000 are the largest UDP payloads of the usual MTUs.
	payload1500 = 1472
	payload9000 = 8972

	opSize    = 64 << 10 // size of a bulk write in bytes
	opDepth   = 4        // bulk writes of one flow that are outstanding
	smallSize = 64       // size of a request
	memory    = 1 << 20  // registered memory, which all flows use

	// settle is the time between the last connection and the first operation: the search for the path MTU ends.
	settle = 5 * time.Millisecond
)

// lineRate returns the rate of payload in bits per second if every packet is full.
func lineRate(rate int64, packet int) float64 {
	return float64(rate) * float64(packet-packetOverhead) / float64(packet+wireOverhead)
}

package wire

// Stats counts what an engine did. All fields only grow.
type Stats struct {
	RxPackets, TxPackets uint64
	RxMessages           uint64 // messages received whole
	TxRequests           uint64 // sends, writes, reads and atomics completed successfully
	RxBytes, TxBytes     uint64 // payload of operations placed and sent, repeats excluded
	Retransmits          uint64 // packets sent again
	Timeouts             uint64 // retransmission timeouts
	AcksSent             uint64 // packets that only acknowledge
	Duplicates           uint64 // packets that had arrived before
	Early                uint64 // packets held because an earlier one was missing
	EarlyDropped         uint64 // early packets for which there was no room
	BadPackets           uint64 // too short, unknown version or type
	BadChecksum          uint64
	UnknownConnection    uint64
	Strays               uint64 // packets for another engine's connection
	StraysDropped        uint64
	ProtectionErrors     uint64 // remote accesses refused
	ProtocolErrors       uint64 // packets of an established connection that made no sense
	Backpressure         uint64 // times the transmit ring was full
	CreditStalls         uint64 // times a message waited for a receive at the peer
	Overflows            uint64 // completions lost in a full queue
	Connects, Accepts    uint64 // connections established, active and passive
	Rejects              uint64 // requests refused
	Challenges           uint64 // requests asked to prove their address
	BlackHoles           uint64 // times a path stopped passing packets of the size in use
	Resets               uint64 // packets of unknown connections answered
	Broken               uint64 // connections that broke
	RequestsDropped      uint64 // requests ignored because too many were half-open
}

// Stats is a copy of the engine's counters.
func (e *Engine) Stats() Stats { return e.stats }

// Add adds the counters of another engine.
func (s *Stats) Add(o Stats) {
	s.RxPackets += o.RxPackets
	s.TxPackets += o.TxPackets
	s.RxMessages += o.RxMessages
	s.TxRequests += o.TxRequests
	s.RxBytes += o.RxBytes
	s.TxBytes += o.TxBytes
	s.Retransmits += o.Retransmits
	s.Timeouts += o.Timeouts
	s.AcksSent += o.AcksSent
	s.Duplicates += o.Duplicates
	s.Early += o.Early
	s.EarlyDropped += o.EarlyDropped
	s.BadPackets += o.BadPackets
	s.BadChecksum += o.BadChecksum
	s.UnknownConnection += o.UnknownConnection
	s.Strays += o.Strays
	s.StraysDropped += o.StraysDropped
	s.ProtectionErrors += o.ProtectionErrors
	s.ProtocolErrors += o.ProtocolErrors
	s.Backpressure += o.Backpressure
	s.CreditStalls += o.CreditStalls
	s.Overflows += o.Overflows
	s.Connects += o.Connects
	s.Accepts += o.Accepts
	s.Rejects += o.Rejects
	s.Challenges += o.Challenges
	s.BlackHoles += o.BlackHoles
	s.Resets += o.Resets
	s.Broken += o.Broken
	s.RequestsDropped += o.RequestsDropped
}

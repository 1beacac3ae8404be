// Package tcp has senders and receivers that behave as TCP does, as neighbours of the protocol in simulated networks.
//
// A Sender has data without end. Its congestion control is NewReno (RFC 5681, RFC 6582), CUBIC (RFC 9438) or DCTCP (RFC
// 8257). It finds losses by selective acknowledgement (RFC 6675) and by the time of sending, which also finds lost
// retransmissions (RACK, RFC 8985); a probe follows the tail of a window (TLP). Its retransmission timeout (RFC 6298) is
// at least 200 ms, as in Linux. A Receiver acknowledges every second segment, or after 40 ms.
//
// The number of frames of a sender's link limits what waits in its host, as TCP Small Queues and BQL do in Linux.
//
// Sequence numbers count full segments. There is no handshake, and no flow control. An acknowledgement lists the
// segments that have arrived since the one before, so acknowledgements must not be lost. Slow start is that of RFC 5681
// without HyStart++.
//
// Ordering: a receiver acknowledges segments in the order of their arrival. Ownership: frames belong to the link.
// Threading: one goroutine drives a Sender or Receiver by Turn.
package tcp

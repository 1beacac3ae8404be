package metrics

import (
	"cmp"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/dat"
)

// sample is the data that one scrape reads.
type sample struct {
	attr dat.IAParam
	dat.Stats
}

// family describes one metric.
type family struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string                                               // names of the labels, without ia
	show       func(s *sample, put func(v float64, labels ...string)) // calls put for each value; nil for a histogram
	histogram  func(s *sample) *dat.Histogram                         // returns the histogram; nil for other metrics
}

// counter makes a family of one counter.
func counter(name, help string, value func(*sample) uint64) family {
	return family{name: name, help: help, kind: prometheus.CounterValue,
		show: func(s *sample, put func(float64, ...string)) { put(float64(value(s))) }}
}

// gauge makes a family of one gauge.
func gauge(name, help string, value func(*sample) float64) family {
	return family{name: name, help: help, kind: prometheus.GaugeValue,
		show: func(s *sample, put func(float64, ...string)) { put(value(s)) }}
}

// securityOf returns whether the connections of an adapter are secure or plaintext.
func securityOf(secure bool) string {
	if secure {
		return "secure"
	}
	return "plaintext"
}

// families has all metrics. Names and units follow the conventions of Prometheus: base units, and the suffix _total for
// counters. A test checks that docs/METRICS.md has the same metrics.
var families = []family{
	{name: "adapter_info", kind: prometheus.GaugeValue, labels: []string{"mode", "address", "port", "max_packet_bytes", "offload", "security"},
		help: "Always 1; the labels describe the adapter: granted mode, address, port, largest UDP payload, offloads of the kernel in use, and whether connections are secure or plaintext.",
		show: func(s *sample, put func(float64, ...string)) {
			put(1, s.Mode, s.attr.Address.String(), strconv.Itoa(int(s.attr.Port)), strconv.Itoa(s.attr.MaxPacket), s.attr.Offload, securityOf(s.attr.Secure))
		}},
	{name: "connections", kind: prometheus.GaugeValue, labels: []string{"state"},
		help: "Number of connections by state. The state closing means that the peer has not confirmed the end yet.", show: showConnections},
	{name: "connections_by_key", kind: prometheus.GaugeValue, labels: []string{"key"},
		help: "Number of established connections in secure mode by the public key of this host that they use, or psk with a shared secret. Keys of the key file are there without connections too.", show: showKeys},

	counter("receive_messages_total", "Messages received completely.", func(s *sample) uint64 { return s.RxMessages }),
	counter("requests_completed_total", "Sends, writes, reads and atomics that completed successfully.", func(s *sample) uint64 { return s.TxRequests }),
	counter("receive_bytes_total", "Payload bytes received, retransmissions excluded.", func(s *sample) uint64 { return s.RxBytes }),
	counter("transmit_bytes_total", "Payload bytes sent, retransmissions excluded.", func(s *sample) uint64 { return s.TxBytes }),
	counter("transmit_in_place_bytes_total", "Payload bytes sent without a copy, from memory of IA.Alloc, retransmissions included.", func(s *sample) uint64 { return s.InPlaceBytes }),
	counter("receive_packets_total", "Protocol packets received.", func(s *sample) uint64 { return s.RxPackets }),
	counter("transmit_packets_total", "Protocol packets sent, retransmissions included.", func(s *sample) uint64 { return s.TxPackets }),
	{name: "request_latency_seconds",
		help:      "Time from the poll that sent the first packet of a request to the poll in which the request completed successfully. It does not include the time in which the request waited for credit or for the congestion window.",
		histogram: func(s *sample) *dat.Histogram { return &s.Latency }},
	{name: "round_trip_seconds",
		help:      "Time from sending a packet to its acknowledgement, minus the delay that the peer reports. Each packet that acknowledges new data gives one sample.",
		histogram: func(s *sample) *dat.Histogram { return &s.RoundTrip }},

	{name: "retransmits_total", kind: prometheus.CounterValue, labels: []string{"cause"},
		help: "Packets sent again, by cause. loss: packets sent later were acknowledged. tail_probe, timeout: no acknowledgement came in time. not_ready: the peer had no receive. evicted: the peer dropped an early packet that it held. black_hole: the path does not pass packets of this size, so the data is sent in smaller packets; counted in packets of the old size.",
		show: func(s *sample, put func(float64, ...string)) {
			for cause, n := range s.RetransmitsBy {
				put(float64(n), dat.Cause(cause).String())
			}
		}},
	counter("retransmission_timeouts_total", "Retransmission timeouts.", func(s *sample) uint64 { return s.Timeouts }),
	counter("unreachable_reports_total", "Reports that a packet did not arrive: ICMP destination unreachable, including forged reports, and neighbours that do not answer.", func(s *sample) uint64 { return s.Unreachable }),
	counter("unreachable_reports_ignored_total", "Unreachable reports that quote no packet of a connection, because they are forged, late or truncated.", func(s *sample) uint64 { return s.UnreachableIgnored }),
	counter("black_holes_total", "Times a path stopped passing packets of the current size.", func(s *sample) uint64 { return s.BlackHoles }),
	counter("acknowledgements_sent_total", "Packets sent that carry only an acknowledgement.", func(s *sample) uint64 { return s.AcksSent }),
	counter("duplicate_packets_total", "Packets received more than once, or of an epoch that has ended.", func(s *sample) uint64 { return s.Duplicates }),
	counter("early_packets_total", "Packets held because an earlier packet was missing, or because a message found no receive.", func(s *sample) uint64 { return s.Early }),
	counter("early_packets_dropped_total", "Early packets dropped for lack of room.", func(s *sample) uint64 { return s.EarlyDropped }),

	gauge("congestion_window_packets", "Sum of the congestion windows of all connections, in packets.", func(s *sample) float64 { return s.Window }),
	gauge("in_flight_packets", "Packets in the network, of all connections together.", func(s *sample) float64 { return float64(s.InFlight) }),
	gauge("outstanding_requests", "Requests that are posted and not completed yet.", func(s *sample) float64 { return float64(s.Requests) }),
	gauge("credits_messages", "Messages that peers have promised to take (credits).", func(s *sample) float64 { return float64(s.Credits) }),
	gauge("starved_connections", "Connections with a message that waits for the peer to post a receive.", func(s *sample) float64 { return float64(s.Starved) }),
	counter("credit_stalls_total", "Times a message had to wait for credit: for the peer to post a receive.", func(s *sample) uint64 { return s.CreditStalls }),
	counter("not_ready_sent_total", "Times a message of a peer found no receive on this side (RNR); the peer sends it again later.", func(s *sample) uint64 { return s.NotReadySent }),
	counter("not_ready_received_total", "Times a message found no receive at the peer (RNR); it is sent again later.", func(s *sample) uint64 { return s.NotReadyReceived }),

	gauge("event_dispatchers", "Event dispatchers of this open of the adapter.", func(s *sample) float64 { return float64(s.Dispatchers.Count) }),
	gauge("event_dispatcher_events", "Events queued in all dispatchers together.", func(s *sample) float64 { return float64(s.Dispatchers.Queued) }),
	gauge("event_dispatcher_longest_events", "Events queued in the dispatcher with the most events.", func(s *sample) float64 { return float64(s.Dispatchers.Longest) }),
	gauge("event_dispatcher_used_ratio", "Maximum of queued events divided by queue length, over all dispatchers.", func(s *sample) float64 { return s.Dispatchers.Fullest }),
	counter("event_overflows_total", "Completions lost because an event dispatcher was full.", func(s *sample) uint64 { return s.Overflows }),
	counter("notification_triggers_total", "Triggers of notification objects.", func(s *sample) uint64 { return s.Triggers }),
	counter("notification_wakeups_total", "Goroutines released by notification objects.", func(s *sample) uint64 { return s.Wakeups }),
	counter("waiter_sleeps_total", "Times a goroutine slept while it waited for an event.", func(s *sample) uint64 { return s.Sleeps }),

	counter("connects_total", "Connections established on the active side.", func(s *sample) uint64 { return s.Connects }),
	counter("accepts_total", "Connections established on the passive side.", func(s *sample) uint64 { return s.Accepts }),
	counter("connection_requests_rejected_total", "Connection requests refused.", func(s *sample) uint64 { return s.ConnRequestsRejected }),
	counter("connection_requests_challenged_total", "Connection requests answered with a Challenge, to verify the address.", func(s *sample) uint64 { return s.ConnRequestsChallenged }),
	counter("connection_requests_dropped_total", "Connection requests ignored: their address had got its share of replies, too many were half-open, their address has used wrong keys, or, in secure mode, too many handshakes waited or the requester has another request.", func(s *sample) uint64 { return s.ConnRequestsDropped }),
	counter("connections_broken_total", "Connections that broke.", func(s *sample) uint64 { return s.Broken }),
	counter("protection_errors_total", "Operations of peers refused: wrong key, range, privilege or zone.", func(s *sample) uint64 { return s.ProtectionErrors }),
	counter("memory_accesses_denied_total", "Protection errors because the word memory= of the peer in the file of peers does not permit the access.", func(s *sample) uint64 { return s.AccessDenied }),
	counter("protocol_errors_total", "Packets of established connections that violated the protocol.", func(s *sample) uint64 { return s.ProtocolErrors }),
	counter("bad_packets_total", "Packets that are malformed, or of unknown version or type.", func(s *sample) uint64 { return s.BadPackets }),
	counter("checksum_errors_total", "Packets with a wrong CRC, or too short for one.", func(s *sample) uint64 { return s.BadChecksum }),
	counter("unknown_connection_packets_total", "Packets whose connection ID, verification tag and source address match no connection.", func(s *sample) uint64 { return s.UnknownConnection }),
	counter("forged_packets_total", "Packets with correct verification tag and source address, but with a PSN or acknowledgement that the peer cannot have sent.", func(s *sample) uint64 { return s.Forged }),
	counter("replayed_packets_total", "Packets of a secure connection that were opened before, or came too late to tell.", func(s *sample) uint64 { return s.Replayed }),
	counter("unopened_packets_total", "Packets of a secure connection, and messages of handshakes, that do not authenticate.", func(s *sample) uint64 { return s.Unopened }),
	{name: "handshakes_denied_total", kind: prometheus.CounterValue, labels: []string{"reason"},
		help: "Handshakes of requesters that a secure adapter refused. key: no such key here, or the message does not authenticate. unknown: the file of peers does not have the requester. expired, address, service: the line of the requester does not allow it. busy: too many handshakes waited. limit: the requester has reached a limit of its own.",
		show: func(s *sample, put func(float64, ...string)) {
			for why, n := range s.HandshakesDenied {
				put(float64(n), dat.Denial(why).String())
			}
		}},
	counter("connections_revoked_total", "Connections and requests that ended because the file of peers does not permit them any more.", func(s *sample) uint64 { return s.Revoked }),
	counter("resets_sent_total", "Packets of unknown connections answered with Reset.", func(s *sample) uint64 { return s.Resets }),
	counter("replies_paused_total", "Replies without a connection that were not sent, because replies to that address, to its network or of the engine took too much time.", func(s *sample) uint64 { return s.RepliesPaused }),
	counter("stray_packets_total", "Packets that arrived on a queue other than that of their connection.", func(s *sample) uint64 { return s.Strays }),
	counter("stray_packets_dropped_total", "Stray packets dropped for lack of room.", func(s *sample) uint64 { return s.StraysDropped }),

	counter("polls_total", "Polls of an engine.", func(s *sample) uint64 { return s.Polls }),
	counter("empty_polls_total", "Polls of an engine in which no packet came or left.", func(s *sample) uint64 { return s.EmptyPolls }),
	counter("transmit_backpressure_total", "Times the transmit ring was full. Over kernel UDP: packets that found the send buffer of the socket full.", func(s *sample) uint64 { return s.Backpressure + s.Link.TxFull }),

	counter("link_receive_packets_total", "Packets received by the link.", func(s *sample) uint64 { return s.Link.RxPackets }),
	counter("link_receive_bytes_total", "Bytes received by the link.", func(s *sample) uint64 { return s.Link.RxBytes }),
	counter("link_transmit_packets_total", "Packets that the link passed to the device or the kernel.", func(s *sample) uint64 { return s.Link.TxPackets }),
	counter("link_transmit_bytes_total", "Bytes sent by the link.", func(s *sample) uint64 { return s.Link.TxBytes }),
	counter("link_receive_dropped_total", "Packets dropped on arrival because no frame was free or a ring was full.", func(s *sample) uint64 { return s.Link.RxDropped }),
	counter("link_receive_invalid_total", "Packets that arrived malformed or with an impossible source address.", func(s *sample) uint64 { return s.Link.RxInvalid }),
	counter("link_transmit_dropped_total", "Packets that the link accepted but that were not transmitted, for example because the neighbour could not be resolved.", func(s *sample) uint64 { return s.Link.TxDropped }),
	counter("link_receive_groups_total", "Groups of packets that the kernel passed to the link as one message (UDP_GRO).", func(s *sample) uint64 { return s.Link.RxGroups }),
	counter("link_transmit_groups_total", "Groups of packets that the link passed to the kernel as one message (UDP_SEGMENT).", func(s *sample) uint64 { return s.Link.TxGroups }),
	counter("link_transmit_kicks_total", "System calls that start transmission.", func(s *sample) uint64 { return s.Link.TxKicks }),
	counter("link_wakeups_total", "Times a wait for packets of the link slept.", func(s *sample) uint64 { return s.Link.Wakeups }),

	{name: "steering_packets_total", kind: prometheus.CounterValue, labels: []string{"verdict"},
		help: "Packets seen by the XDP program, by its verdict.", show: showSteering},
	{name: "xdp_ring_used_slots", kind: prometheus.GaugeValue, labels: []string{"queue", "ring"},
		help: "Slots in use in a ring of an AF_XDP socket. fill: free frames for received packets. rx: received packets. tx: packets to send. completion: transmitted frames.",
		show: showRings(func(r *dat.RingStats) int { return r.Used })},
	{name: "xdp_ring_slots", kind: prometheus.GaugeValue, labels: []string{"queue", "ring"},
		help: "Number of slots of a ring of an AF_XDP socket.",
		show: showRings(func(r *dat.RingStats) int { return r.Size })},
	{name: "xdp_receive_dropped_packets_total", kind: prometheus.CounterValue, labels: []string{"queue", "reason"},
		help: "Packets for an AF_XDP socket that the kernel dropped. ring_full: the rx ring was full. other: no frame was free, or the packet was too long.",
		show: showKernel(map[string]string{"rx_ring_full": "ring_full", "rx_dropped": "other"})},
	{name: "xdp_invalid_descriptors_total", kind: prometheus.CounterValue, labels: []string{"queue", "ring"},
		help: "Invalid descriptors that the kernel found in a ring of an AF_XDP socket. A value above 0 is a fault of datxdp.",
		show: showKernel(map[string]string{"rx_invalid_descs": "fill", "tx_invalid_descs": "tx"})},
	{name: "xdp_ring_empty_total", kind: prometheus.CounterValue, labels: []string{"queue", "ring"},
		help: "Times the kernel found a ring of an AF_XDP socket empty. fill: no frame for a received packet. tx: no packet to send. This does not mean that packets were lost.",
		show: showKernel(map[string]string{"rx_fill_ring_empty_descs": "fill", "tx_ring_empty_descs": "tx"})},
	{name: "xdp_queue_proven", kind: prometheus.GaugeValue, labels: []string{"queue", "side"},
		help: "1 if a side of an AF_XDP socket is known to work, otherwise 0. tx: a transmitted frame has completed. rx: a packet has arrived.",
		show: showProven},
	{name: "xdp_transmit_stalled", kind: prometheus.GaugeValue, labels: []string{"queue"},
		help: "1 if the transmit ring of an AF_XDP socket does not advance although packets wait, otherwise 0.",
		show: showQueue(func(q *dat.QueueStats) float64 { return truth(q.Stalled) })},
	{name: "xdp_transmit_stalls_total", kind: prometheus.CounterValue, labels: []string{"queue"},
		help: "Times the transmit ring of an AF_XDP socket did not advance for 200 ms although packets waited.",
		show: showQueue(func(q *dat.QueueStats) float64 { return float64(q.Stalls) })},
	{name: "xdp_reopens_total", kind: prometheus.CounterValue, labels: []string{"queue"},
		help: "Times an AF_XDP socket was closed and opened again because its transmit ring did not advance.",
		show: showQueue(func(q *dat.QueueStats) float64 { return float64(q.Reopens) })},
}

func showConnections(s *sample, put func(float64, ...string)) {
	alive := s.Connecting + s.Accepting + s.Established + s.Draining
	put(float64(s.Connecting), "connecting")
	put(float64(s.Accepting), "accepting")
	put(float64(s.Established), "established")
	put(float64(s.Draining), "draining")
	put(float64(max(s.Connections-alive, 0)), "closing")
}

func showKeys(s *sample, put func(float64, ...string)) {
	for _, k := range s.Keys {
		put(float64(k.Connections), cmp.Or(k.Key.String(), "psk"))
	}
}

func showSteering(s *sample, put func(float64, ...string)) {
	for _, c := range s.Steering {
		put(float64(c.Value), c.Name)
	}
}

// showRings exports one value for each ring of each queue.
func showRings(value func(*dat.RingStats) int) func(*sample, func(float64, ...string)) {
	return func(s *sample, put func(float64, ...string)) {
		for _, q := range s.Queues {
			for i := range q.Rings {
				put(float64(value(&q.Rings[i])), strconv.Itoa(q.Queue), q.Rings[i].Name)
			}
		}
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func showProven(s *sample, put func(float64, ...string)) {
	for _, q := range s.Queues {
		put(truth(q.TxProven), strconv.Itoa(q.Queue), "tx")
		put(truth(q.RxProven), strconv.Itoa(q.Queue), "rx")
	}
}

// showQueue exports one value for each queue.
func showQueue(value func(*dat.QueueStats) float64) func(*sample, func(float64, ...string)) {
	return func(s *sample, put func(float64, ...string)) {
		for i := range s.Queues {
			put(value(&s.Queues[i]), strconv.Itoa(s.Queues[i].Queue))
		}
	}
}

// showKernel exports some of the kernel's counters (XDP_STATISTICS) of each queue, as one metric. The metric has a
// label that tells the counters apart. For the counter named n, the value of this label is labels[n]. Counters that are
// not in labels are not exported.
func showKernel(labels map[string]string) func(*sample, func(float64, ...string)) {
	return func(s *sample, put func(float64, ...string)) {
		for _, q := range s.Queues {
			for _, c := range q.Kernel {
				if label := labels[c.Name]; label != "" {
					put(float64(c.Value), strconv.Itoa(q.Queue), label)
				}
			}
		}
	}
}

package metrics

import (
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
	labels     []string                                               // labels besides ia, each with few values
	show       func(s *sample, put func(v float64, labels ...string)) // calls put for each value; nil for a histogram
	histogram  func(s *sample) *dat.Histogram                         // nil for a counter or gauge
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

// families has all metrics. Names and units follow the conventions of Prometheus: base units, and _total for
// counters. A test holds docs/METRICS.md to it.
var families = []family{
	{name: "adapter_info", kind: prometheus.GaugeValue, labels: []string{"mode", "address", "port", "max_packet_bytes"},
		help: "Adapter as it is open: the mode that was granted, address, port and largest UDP payload. Always 1.",
		show: func(s *sample, put func(float64, ...string)) {
			put(1, s.Mode, s.attr.Address.String(), strconv.Itoa(int(s.attr.Port)), strconv.Itoa(s.attr.MaxPacket))
		}},
	{name: "connections", kind: prometheus.GaugeValue, labels: []string{"state"},
		help: "Connections by state; one that is closing waits for the peer to confirm the end.", show: showConnections},

	counter("receive_messages_total", "Messages received whole.", func(s *sample) uint64 { return s.RxMessages }),
	counter("requests_completed_total", "Operations completed successfully: sends, writes, reads and atomics.", func(s *sample) uint64 { return s.TxRequests }),
	counter("receive_bytes_total", "Bytes of operations placed, repeats excluded.", func(s *sample) uint64 { return s.RxBytes }),
	counter("transmit_bytes_total", "Bytes of operations sent, repeats excluded.", func(s *sample) uint64 { return s.TxBytes }),
	counter("transmit_in_place_bytes_total", "Bytes sent without a copy from memory of IA.Alloc, repeats included.", func(s *sample) uint64 { return s.InPlaceBytes }),
	counter("receive_packets_total", "Protocol packets received.", func(s *sample) uint64 { return s.RxPackets }),
	counter("transmit_packets_total", "Protocol packets sent, repeats included.", func(s *sample) uint64 { return s.TxPackets }),
	{name: "request_latency_seconds",
		help:      "Time from the poll in which the first packet of a request left to the poll in which it completed successfully. What it waits before for credit or for the congestion window is not in it.",
		histogram: func(s *sample) *dat.Histogram { return &s.Latency }},
	{name: "round_trip_seconds",
		help:      "Time from sending a packet to its acknowledgement, less what the peer kept it. One sample for each packet that acknowledges something new.",
		histogram: func(s *sample) *dat.Histogram { return &s.RoundTrip }},

	{name: "retransmits_total", kind: prometheus.CounterValue, labels: []string{"cause"},
		help: "Packets sent again: later ones arrived (loss), no acknowledgement came in time (tail_probe, then timeout), the peer had no receive (not_ready) or gave up what it held (evicted), the path does not pass its size and everything is cut anew (black_hole, counted as it was cut before).",
		show: func(s *sample, put func(float64, ...string)) {
			for cause, n := range s.RetransmitsBy {
				put(float64(n), dat.Cause(cause).String())
			}
		}},
	counter("retransmission_timeouts_total", "Retransmission timeouts.", func(s *sample) uint64 { return s.Timeouts }),
	counter("unreachable_reports_total", "ICMP messages that nothing listens at a peer's port, true or forged.", func(s *sample) uint64 { return s.Unreachable }),
	counter("unreachable_reports_ignored_total", "Those of them that quote no packet of a connection: forged, late, or cut short.", func(s *sample) uint64 { return s.UnreachableIgnored }),
	counter("black_holes_total", "Times a path stopped passing packets of the size in use.", func(s *sample) uint64 { return s.BlackHoles }),
	counter("acknowledgements_sent_total", "Packets sent that only acknowledge.", func(s *sample) uint64 { return s.AcksSent }),
	counter("duplicate_packets_total", "Packets that had arrived before.", func(s *sample) uint64 { return s.Duplicates }),
	counter("early_packets_total", "Packets held because an earlier one was missing.", func(s *sample) uint64 { return s.Early }),
	counter("early_packets_dropped_total", "Early packets for which there was no room.", func(s *sample) uint64 { return s.EarlyDropped }),

	gauge("congestion_window_packets", "Packets that may be in the network, the sum of all connections.", func(s *sample) float64 { return s.Window }),
	gauge("in_flight_packets", "Packets that are in the network, the sum of all connections.", func(s *sample) float64 { return float64(s.InFlight) }),
	gauge("outstanding_requests", "Requests that are posted and not completed.", func(s *sample) float64 { return float64(s.Requests) }),
	gauge("credits_messages", "Messages that peers have promised to take.", func(s *sample) float64 { return float64(s.Credits) }),
	gauge("starved_connections", "Connections with a message that waits for a receive at the peer.", func(s *sample) float64 { return float64(s.Starved) }),
	counter("credit_stalls_total", "Times a message began to wait for a receive at the peer.", func(s *sample) uint64 { return s.CreditStalls }),
	counter("not_ready_sent_total", "Times a message of a peer found no receive here and was put off.", func(s *sample) uint64 { return s.NotReadySent }),
	counter("not_ready_received_total", "Times a peer put a message off.", func(s *sample) uint64 { return s.NotReadyReceived }),

	gauge("event_dispatchers", "Event dispatchers of this open of the adapter.", func(s *sample) float64 { return float64(s.Dispatchers.Count) }),
	gauge("event_dispatcher_events", "Events that wait in dispatchers, the sum of all.", func(s *sample) float64 { return float64(s.Dispatchers.Queued) }),
	gauge("event_dispatcher_longest_events", "Events that wait in the dispatcher with most.", func(s *sample) float64 { return float64(s.Dispatchers.Longest) }),
	gauge("event_dispatcher_used_ratio", "Part of the fullest dispatcher that is in use.", func(s *sample) float64 { return s.Dispatchers.Fullest }),
	counter("event_overflows_total", "Completions lost in a full event dispatcher.", func(s *sample) uint64 { return s.Overflows }),
	counter("notification_triggers_total", "Triggers of notification objects.", func(s *sample) uint64 { return s.Triggers }),
	counter("notification_wakeups_total", "Goroutines that notification objects released.", func(s *sample) uint64 { return s.Wakeups }),
	counter("waiter_sleeps_total", "Times a goroutine that waited for an event went to sleep.", func(s *sample) uint64 { return s.Sleeps }),

	counter("connects_total", "Connections established by this side.", func(s *sample) uint64 { return s.Connects }),
	counter("accepts_total", "Connections established by the peer.", func(s *sample) uint64 { return s.Accepts }),
	counter("connection_requests_rejected_total", "Connection requests refused.", func(s *sample) uint64 { return s.ConnRequestsRejected }),
	counter("connection_requests_challenged_total", "Connection requests asked to prove their address.", func(s *sample) uint64 { return s.ConnRequestsChallenged }),
	counter("connection_requests_dropped_total", "Connection requests ignored because too many were half-open.", func(s *sample) uint64 { return s.ConnRequestsDropped }),
	counter("connections_broken_total", "Connections that broke.", func(s *sample) uint64 { return s.Broken }),
	counter("protection_errors_total", "Remote accesses refused.", func(s *sample) uint64 { return s.ProtectionErrors }),
	counter("protocol_errors_total", "Packets of an established connection that made no sense.", func(s *sample) uint64 { return s.ProtocolErrors }),
	counter("bad_packets_total", "Packets too short, or of unknown version or type.", func(s *sample) uint64 { return s.BadPackets }),
	counter("checksum_errors_total", "Packets with a wrong CRC.", func(s *sample) uint64 { return s.BadChecksum }),
	counter("unknown_connection_packets_total", "Packets that name no connection, or have another verification tag or source address than its peer.", func(s *sample) uint64 { return s.UnknownConnection }),
	counter("forged_packets_total", "Packets with the verification tag and the source address of a connection whose numbers (PSN, acknowledgement) its peer cannot have sent.", func(s *sample) uint64 { return s.Forged }),
	counter("resets_sent_total", "Packets of unknown connections answered with Reset.", func(s *sample) uint64 { return s.Resets }),
	counter("stray_packets_total", "Packets that arrived on another queue than their connection's.", func(s *sample) uint64 { return s.Strays }),
	counter("stray_packets_dropped_total", "Stray packets for which there was no room.", func(s *sample) uint64 { return s.StraysDropped }),

	counter("polls_total", "Looks at an engine.", func(s *sample) uint64 { return s.Polls }),
	counter("empty_polls_total", "Looks at an engine in which no packet came or left.", func(s *sample) uint64 { return s.EmptyPolls }),
	counter("transmit_backpressure_total", "Times the transmit ring was full; over kernel UDP, packets that found the send buffer of the socket full.", func(s *sample) uint64 { return s.Backpressure + s.Link.TxFull }),

	counter("link_receive_packets_total", "Packets received by the link.", func(s *sample) uint64 { return s.Link.RxPackets }),
	counter("link_receive_bytes_total", "Bytes received by the link.", func(s *sample) uint64 { return s.Link.RxBytes }),
	counter("link_transmit_packets_total", "Packets that the link gave to the device or the kernel.", func(s *sample) uint64 { return s.Link.TxPackets }),
	counter("link_transmit_bytes_total", "Bytes sent by the link.", func(s *sample) uint64 { return s.Link.TxBytes }),
	counter("link_receive_dropped_total", "Packets that arrived and were lost for want of a frame or of room in a ring.", func(s *sample) uint64 { return s.Link.RxDropped }),
	counter("link_receive_invalid_total", "Packets that arrived and were not well formed, or came from where no host can be.", func(s *sample) uint64 { return s.Link.RxInvalid }),
	counter("link_transmit_dropped_total", "Packets accepted for sending that never left; also packets to neighbours that are not resolved.", func(s *sample) uint64 { return s.Link.TxDropped }),
	counter("link_transmit_kicks_total", "System calls that drove transmission.", func(s *sample) uint64 { return s.Link.TxKicks }),
	counter("link_wakeups_total", "Returns from a wait that had slept.", func(s *sample) uint64 { return s.Link.Wakeups }),

	{name: "steering_packets_total", kind: prometheus.CounterValue, labels: []string{"verdict"},
		help: "Packets seen by the XDP program, by what it did with them.", show: showSteering},
	{name: "xdp_ring_used_slots", kind: prometheus.GaugeValue, labels: []string{"queue", "ring"},
		help: "Slots in use of the rings of an AF_XDP socket: frames to receive into (fill), packets received (rx), packets to be sent (tx), frames done with (completion).",
		show: showRings(func(r *dat.RingStats) int { return r.Used })},
	{name: "xdp_ring_slots", kind: prometheus.GaugeValue, labels: []string{"queue", "ring"},
		help: "Slots of the rings of an AF_XDP socket.",
		show: showRings(func(r *dat.RingStats) int { return r.Size })},
	{name: "xdp_receive_dropped_packets_total", kind: prometheus.CounterValue, labels: []string{"queue", "reason"},
		help: "Packets for an AF_XDP socket that the kernel dropped: the rx ring was full (ring_full), or there was no frame to receive into or the packet was too long (other).",
		show: showKernel(map[string]string{"rx_ring_full": "ring_full", "rx_dropped": "other"})},
	{name: "xdp_invalid_descriptors_total", kind: prometheus.CounterValue, labels: []string{"queue", "ring"},
		help: "Slots of the rings of an AF_XDP socket that made no sense to the kernel. Any is a fault of this program.",
		show: showKernel(map[string]string{"rx_invalid_descs": "fill", "tx_invalid_descs": "tx"})},
	{name: "xdp_ring_empty_total", kind: prometheus.CounterValue, labels: []string{"queue", "ring"},
		help: "Times the kernel looked into a ring of an AF_XDP socket and found nothing: no frame to receive into (fill), no packet to send (tx). No loss in itself.",
		show: showKernel(map[string]string{"rx_fill_ring_empty_descs": "fill", "tx_ring_empty_descs": "tx"})},
	{name: "xdp_queue_proven", kind: prometheus.GaugeValue, labels: []string{"queue", "side"},
		help: "Whether the side of an AF_XDP socket is known to work, 0 or 1: a frame was transmitted and came back (tx), a packet arrived (rx).",
		show: showProven},
	{name: "xdp_transmit_stalled", kind: prometheus.GaugeValue, labels: []string{"queue"},
		help: "Whether packets wait and the transmit ring of an AF_XDP socket stands still, 0 or 1.",
		show: showQueue(func(q *dat.QueueStats) float64 { return truth(q.Stalled) })},
	{name: "xdp_transmit_stalls_total", kind: prometheus.CounterValue, labels: []string{"queue"},
		help: "Times the transmit ring of an AF_XDP socket stood still for 200 ms while packets waited.",
		show: showQueue(func(q *dat.QueueStats) float64 { return float64(q.Stalls) })},
	{name: "xdp_reopens_total", kind: prometheus.CounterValue, labels: []string{"queue"},
		help: "Times an AF_XDP socket was opened again because its transmit ring stood still.",
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

// showKernel exports some of the kernel's counters of each queue. labels maps their names in XDP_STATISTICS to label
// values.
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

package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/dat"
)

// Collector is a prometheus.Collector for one adapter.
type Collector struct {
	ia          *dat.IA
	info        *prometheus.Desc
	connections *prometheus.Desc
	steering    *prometheus.Desc
	counters    []counter
}

var _ prometheus.Collector = (*Collector)(nil)

// counter is one field of dat.Stats with its description.
type counter struct {
	desc  *prometheus.Desc
	value func(*dat.Stats) uint64
}

// NewCollector makes a collector; name becomes the label ia of every metric.
func NewCollector(name string, ia *dat.IA) *Collector {
	labels := prometheus.Labels{"ia": name}
	c := &Collector{
		ia: ia,
		info: prometheus.NewDesc("datxdp_adapter_info",
			"Adapter as it is open: the mode that was granted, address, port and largest UDP payload.",
			[]string{"mode", "address", "port", "max_packet_bytes"}, labels),
		connections: prometheus.NewDesc("datxdp_connections", "Connections that exist now.", nil, labels),
		steering: prometheus.NewDesc("datxdp_steering_packets_total",
			"Packets seen by the XDP program, by what it did with them.", []string{"verdict"}, labels),
	}
	for _, t := range table {
		c.counters = append(c.counters, counter{prometheus.NewDesc("datxdp_"+t.name, t.help, nil, labels), t.value})
	}
	return c
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.info
	ch <- c.connections
	ch <- c.steering
	for _, counter := range c.counters {
		ch <- counter.desc
	}
}

// Collect sends the adapter's counters as they are now.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	attr, err := c.ia.Query()
	stats, statsErr := c.ia.Stats()
	if err != nil || statsErr != nil {
		return // it is closed: there is nothing to show
	}
	ch <- prometheus.MustNewConstMetric(c.info, prometheus.GaugeValue, 1, attr.Mode, attr.Address.String(),
		strconv.Itoa(int(attr.Port)), strconv.Itoa(attr.MaxPacket))
	ch <- prometheus.MustNewConstMetric(c.connections, prometheus.GaugeValue, float64(stats.Connections))
	for _, s := range stats.Steering {
		ch <- prometheus.MustNewConstMetric(c.steering, prometheus.CounterValue, float64(s.Value), s.Name)
	}
	for _, counter := range c.counters {
		ch <- prometheus.MustNewConstMetric(counter.desc, prometheus.CounterValue, float64(counter.value(&stats)))
	}
}

// table is what is counted. Names and units follow Prometheus: base units, _total.
var table = []struct {
	name, help string
	value      func(*dat.Stats) uint64
}{
	{"receive_packets_total", "Protocol packets received.", func(s *dat.Stats) uint64 { return s.RxPackets }},
	{"transmit_packets_total", "Protocol packets sent, repeats included.", func(s *dat.Stats) uint64 { return s.TxPackets }},
	{"receive_bytes_total", "Bytes of operations placed, repeats excluded.", func(s *dat.Stats) uint64 { return s.RxBytes }},
	{"transmit_bytes_total", "Bytes of operations sent, repeats excluded.", func(s *dat.Stats) uint64 { return s.TxBytes }},
	{"receive_messages_total", "Messages received whole.", func(s *dat.Stats) uint64 { return s.RxMessages }},
	{"requests_completed_total", "Sends, writes and reads completed successfully.", func(s *dat.Stats) uint64 { return s.TxRequests }},
	{"retransmits_total", "Packets sent again.", func(s *dat.Stats) uint64 { return s.Retransmits }},
	{"retransmission_timeouts_total", "Retransmission timeouts.", func(s *dat.Stats) uint64 { return s.Timeouts }},
	{"acknowledgements_sent_total", "Packets sent that only acknowledge.", func(s *dat.Stats) uint64 { return s.AcksSent }},
	{"duplicate_packets_total", "Packets that had arrived before.", func(s *dat.Stats) uint64 { return s.Duplicates }},
	{"early_packets_total", "Packets held because an earlier one was missing.", func(s *dat.Stats) uint64 { return s.Early }},
	{"early_packets_dropped_total", "Early packets for which there was no room.", func(s *dat.Stats) uint64 { return s.EarlyDropped }},
	{"bad_packets_total", "Packets too short, or of unknown version or type.", func(s *dat.Stats) uint64 { return s.BadPackets }},
	{"checksum_errors_total", "Packets with a wrong CRC.", func(s *dat.Stats) uint64 { return s.BadChecksum }},
	{"unknown_connection_packets_total", "Packets for no connection.", func(s *dat.Stats) uint64 { return s.UnknownConnection }},
	{"stray_packets_total", "Packets that arrived on another queue than their connection's.", func(s *dat.Stats) uint64 { return s.Strays }},
	{"stray_packets_dropped_total", "Stray packets for which there was no room.", func(s *dat.Stats) uint64 { return s.StraysDropped }},
	{"protection_errors_total", "Remote accesses refused.", func(s *dat.Stats) uint64 { return s.ProtectionErrors }},
	{"protocol_errors_total", "Packets of an established connection that made no sense.", func(s *dat.Stats) uint64 { return s.ProtocolErrors }},
	{"transmit_backpressure_total", "Times the transmit ring was full.", func(s *dat.Stats) uint64 { return s.Backpressure }},
	{"credit_stalls_total", "Times a message waited for a receive at the peer.", func(s *dat.Stats) uint64 { return s.CreditStalls }},
	{"event_overflows_total", "Completions lost in a full event dispatcher.", func(s *dat.Stats) uint64 { return s.Overflows }},
	{"connects_total", "Connections established by this side.", func(s *dat.Stats) uint64 { return s.Connects }},
	{"accepts_total", "Connections established by the peer.", func(s *dat.Stats) uint64 { return s.Accepts }},
	{"rejects_total", "Connection requests refused.", func(s *dat.Stats) uint64 { return s.Rejects }},
	{"challenges_total", "Connection requests asked to prove their address.", func(s *dat.Stats) uint64 { return s.Challenges }},
	{"black_holes_total", "Times a path stopped passing packets of the size in use.", func(s *dat.Stats) uint64 { return s.BlackHoles }},
	{"resets_sent_total", "Packets of unknown connections answered with Reset.", func(s *dat.Stats) uint64 { return s.Resets }},
	{"requests_dropped_total", "Connection requests ignored because too many were half-open.", func(s *dat.Stats) uint64 { return s.RequestsDropped }},
	{"connections_broken_total", "Connections that broke.", func(s *dat.Stats) uint64 { return s.Broken }},

	{"link_receive_packets_total", "Packets received by the link.", func(s *dat.Stats) uint64 { return s.Link.RxPackets }},
	{"link_receive_bytes_total", "Bytes received by the link.", func(s *dat.Stats) uint64 { return s.Link.RxBytes }},
	{"link_transmit_packets_total", "Packets sent by the link.", func(s *dat.Stats) uint64 { return s.Link.TxPackets }},
	{"link_transmit_bytes_total", "Bytes sent by the link.", func(s *dat.Stats) uint64 { return s.Link.TxBytes }},
	{"link_receive_dropped_total", "Packets that arrived and were lost for want of a frame or of room in a ring.", func(s *dat.Stats) uint64 { return s.Link.RxDropped }},
	{"link_receive_invalid_total", "Packets that arrived and were not well formed.", func(s *dat.Stats) uint64 { return s.Link.RxInvalid }},
	{"link_transmit_dropped_total", "Packets accepted for sending that never left.", func(s *dat.Stats) uint64 { return s.Link.TxDropped }},
	{"link_transmit_kicks_total", "System calls that drove transmission.", func(s *dat.Stats) uint64 { return s.Link.TxKicks }},
	{"link_wakeups_total", "Returns from a wait that had slept.", func(s *dat.Stats) uint64 { return s.Link.Wakeups }},
}

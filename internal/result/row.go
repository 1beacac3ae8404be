package result

// Transports, as in the JSON.
const (
	TransportXDP = "xdp"
	TransportUDP = "udp"
	TransportTCP = "tcp"
)

// Metrics, as in the JSON.
const (
	Latency   = "lat"
	Rate      = "rate"
	Requests  = "rr" // requests with answers, several outstanding
	Bandwidth = "bw"
	SHA256    = "sha256"
)

// Row identifies a measurement: the operation, the metric, and the conditions. Two equal rows are the same measurement,
// in one report or in two.
//
// This struct is the only list of these fields. The JSON files, bounds, comparisons, the request of a client to a
// server, titles, tables and the help of datbench report are generated from it. To add a condition, add one field here.
// The zero value means the default. These tags describe a field; every tag except json may be omitted:
//
//	json    the key in files
//	help    the text of datbench report --help
//	title   the text in titles, with %v for the value; default ", KEY %v"; "-" for a field that tables show in a column
//	short   the text behind the operation where there is little room; default the title's text
//	column  the heading of the column in tables; default the key
//	unit    "bytes" for a size
//	peer    "-" for a field that the other end does not need
type Row struct {
	// Op is the operation, Metric the measured quantity.
	Op     string `json:"op"`
	Metric string `json:"metric"`
	// Size is the payload of one operation in bytes; for raw, the bytes of a whole frame.
	Size int64 `json:"size" unit:"bytes"`
	// Transport is xdp, udp or tcp.
	Transport string `json:"transport" peer:"-"`

	// The other fields are conditions.

	// Connections is the number of connections of the row; one thread posts to them in turn. 0 means one.
	Connections int `json:"connections,omitempty" title:" × %v" help:"connections that carry the row, if several"`
	// BothWays means that the operations run in both directions at once.
	BothWays bool `json:"both_ways,omitempty" title:" both ways" column:"both ways" help:"whether operations run in both directions at once (--bidir)"`
	// Depth is the number of outstanding operations on each connection; 0 for the default of the metric.
	Depth int `json:"depth,omitempty" title:"-" short:", depth %v" help:"operations outstanding on each connection, if not the default"`
	// Signal is the number of requests per completion event in a rate row; 0 for the default.
	Signal int `json:"signal,omitempty" title:"-" short:", signal %v" help:"requests for one completion event, if not the default"`
	// MTU is the MTU of the link in bytes.
	MTU int `json:"mtu" title:" at MTU %v" short:"-" peer:"-"`
	// Churn is the number of bytes of heap that the process of each end replaces continuously.
	Churn int64 `json:"churn_bytes,omitempty" unit:"bytes" title:", beside %v of churned heap" short:" churn" column:"churned heap" help:"heap that was churned at both ends"`
	// Busy is the number of busy loops at normal priority on the host of each end.
	Busy int `json:"busy_loops,omitempty" title:", busy loops: %v" short:", busy %v" column:"busy loops" help:"busy loops at normal priority on the host of each end (--busy)"`
	// Realtime means that the measuring thread has real-time priority.
	Realtime bool `json:"realtime,omitempty" title:", at real-time priority" short:", realtime" column:"real-time" peer:"-" help:"whether the measuring thread had real-time priority"`
	// Secure means that the adapters are in secure mode: packets are authenticated and encrypted.
	Secure bool `json:"secure,omitempty" title:" in secure mode" short:"+aes" column:"secure" peer:"-" help:"whether the adapters are in secure mode (--secure, --key)"`
	// Impair is the impairment of received packets, in the format of package tap; empty for none.
	Impair string `json:"impair,omitempty" title:", impaired by %v" short:", impaired" column:"impaired by" peer:"-" help:"what was done to the packets that arrived (--impair)"`
	// AskedMode is the mode of the adapters in a row of datbench links, which compares modes. Other rows have the mode
	// that is granted, and no such condition.
	AskedMode string `json:"asked_mode,omitempty" title:" in %v mode" short:", %v" column:"asked mode" peer:"-" help:"mode of the adapters, in rows of datbench links"`
}

// OverUDP reports whether the row is a DAT operation over kernel UDP.
func (r Row) OverUDP() bool { return r.Transport == TransportUDP }

// Plain returns the row with the same link, impairment and busy loops, and without the other conditions. Other rows are
// compared with it.
func (r Row) Plain() Row {
	return Row{Op: r.Op, Metric: r.Metric, Size: r.Size, Transport: r.Transport, MTU: r.MTU, Impair: r.Impair, Busy: r.Busy}
}

// Place returns the part of the identity that all rows of one table share. It clears operation, size, transport and the
// conditions that tables show in columns.
func (r Row) Place() Row {
	r.Op, r.Size, r.Transport, r.Connections, r.BothWays = "", 0, "", 0, false
	return r.cleared(func(f field) bool { return f.title == "" })
}

// normal returns the row with the default written in one way, because files of older versions write it differently.
func (r Row) normal() Row {
	if r.Connections == 1 {
		r.Connections = 0
	}
	return r
}

// Timed reports whether a metric measures single round trips.
func Timed(metric string) bool { return metric == Latency || metric == Requests }

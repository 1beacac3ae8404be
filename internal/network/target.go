package network

import (
	"fmt"
	"math"
	"regexp"
)

// Target is a bound for one figure of several rows.
type Target struct {
	Text   string // what is measured
	Rows   string // regular expression for their names
	Metric string
	Most   float64 // largest value that meets the target; 0: none
	Least  float64 // smallest value that meets it; 0: none
	Other  bool    // a network beside those that the target was set for
}

// Targets returns what the rows have to reach.
func Targets() []Target { return targets }

var targets = []Target{
	{Text: "64 B request beside 8 bulk flows, ECN at 40 KB: p50 ÷ unloaded", Rows: "requests/25G/128K-ecn", Metric: "p50/alone", Most: 3},
	{Text: "the same, ECN at 100 KB", Rows: "requests/25G/1M-ecn", Metric: "p50/alone", Most: 3},
	{Text: "the same, 1 MB without ECN", Rows: "requests/25G/1M", Metric: "p50/alone", Most: 5},
	{Text: "fairness (Jain) over 10 ms, 2–128 flows, 128 KB with ECN", Rows: `steady/25G/128K-ecn/\d+`, Metric: "jain", Least: 0.95},
	{Text: "the same, 1 MB with ECN", Rows: `steady/25G/1M-ecn/\d+`, Metric: "jain", Least: 0.95},
	{Text: "the same, 1 MB without ECN", Rows: `steady/25G/1M/\d+`, Metric: "jain", Least: 0.95},
	{Text: "the same, 128 KB without ECN, 2–32 flows", Rows: `steady/25G/128K/(2|8|32)`, Metric: "jain", Least: 0.95},
	{Text: "the same, 128 KB without ECN, 128 flows", Rows: `steady/25G/128K/128`, Metric: "jain", Least: 0.8},
	{Text: "packets dropped in %, 8 flows on 128 KB without ECN", Rows: `steady/25G/128K/8`, Metric: "drop %", Most: 1},
	{Text: "the same, 32 flows", Rows: `steady/25G/128K/32`, Metric: "drop %", Most: 6},
	{Text: "cold incast of 64 KiB, ECN, 8 senders: time ÷ ideal", Rows: `incast/25G/.*-ecn/8/64K`, Metric: "cold", Most: 1.1},
	{Text: "the same, 32 senders", Rows: `incast/25G/.*-ecn/32/64K`, Metric: "cold", Most: 1.3},
	{Text: "the same, 128 senders", Rows: `incast/25G/.*-ecn/128/64K`, Metric: "cold", Most: 1.3},
	{Text: "the same without ECN, 8 senders", Rows: `incast/25G/(128K|1M)/8/64K`, Metric: "cold", Most: 1.5},
	{Text: "the same without ECN, 32 senders", Rows: `incast/25G/(128K|1M)/32/64K`, Metric: "cold", Most: 1.5},
	{Text: "the same without ECN, 128 senders", Rows: `incast/25G/(128K|1M)/128/64K`, Metric: "cold", Most: 1.5},
	{Text: "goodput of bulk ÷ line, 2–128 flows", Rows: `steady/25G/.*/\d+`, Metric: "goodput", Least: 0.97},
	{Text: "10 ms, 1 Gb/s: share of the line after 150 ms", Rows: `wan/1G(-9000)?`, Metric: "after", Least: 0.9},
	{Text: "10 ms, 10 Gb/s at MTU 9000: the same", Rows: `wan/10G-9000`, Metric: "after", Least: 0.7},
	{Text: "10 ms, 1 Gb/s, 0.01 % loss: share of that without loss", Rows: `wan/1G(-9000)?-loss`, Metric: "kept", Least: 0.9},
	{Text: "10 ms, 10 Gb/s at MTU 9000, 0.01 % loss: the same", Rows: `wan/10G-9000-loss`, Metric: "kept", Least: 0.9},
	{Text: "5 µs beside 100 µs: larger ÷ smaller share", Rows: `pair/rtt/5us-100us/.*`, Metric: "ratio", Most: 2},
	{Text: "MTU 1500 beside 9000: larger ÷ smaller share", Rows: `pair/mtu/1500-9000/.*`, Metric: "ratio", Most: 2},
	{Text: "beside one CUBIC flow, 100 µs: our share", Rows: `beside/cubic/10G-100µs/.*/1\+1`, Metric: "ours", Least: 0.2},
	{Text: "the same, 1 ms", Rows: `beside/cubic/10G-1ms/.*/1\+1`, Metric: "ours", Least: 0.2},
	{Text: "the same, 10 ms", Rows: `beside/cubic/.*-10ms/.*/1\+1`, Metric: "ours", Least: 0.2},
	{Text: "beside one CUBIC flow, 100 µs: its share", Rows: `beside/cubic/10G-100µs/.*/1\+1`, Metric: "tcp", Least: 0.25},
	{Text: "the same, 1 ms", Rows: `beside/cubic/10G-1ms/.*/1\+1`, Metric: "tcp", Least: 0.25},
	{Text: "the same, 10 ms", Rows: `beside/cubic/.*-10ms/.*/1\+1`, Metric: "tcp", Least: 0.25},
	{Text: "reroute from 8 to 300 µs: share of the line after 100 ms", Rows: `reroute/8µs-300µs`, Metric: "to 200 ms", Least: 0.8},
	{Text: "10 % reordered by 3–30 places, 100 µs: share of the rate in order", Rows: `reorder/100µs/10%`, Metric: "late/in order", Least: 0.8},
	{Text: "full port with packets of 9000 bytes: taken for a black hole", Rows: `pair/mtu/.*`, Metric: "black holes", Most: 0.5},
	{Text: "after stops, outages, floods, reroutes: stories that break the rule (trouble, below), in %", Rows: `trouble/.*`, Metric: "failures %", Most: 0.001},

	{Other: true, Text: "64 B request beside 8 bulk flows at MTU 9000, ECN at 40 KB: p50 ÷ unloaded", Rows: "requests/25G-9000/128K-ecn", Metric: "p50/alone", Most: 5},
	{Other: true, Text: "the same, ECN at 100 KB", Rows: "requests/25G-9000/1M-ecn", Metric: "p50/alone", Most: 5},
	{Other: true, Text: "fairness (Jain) over 10 ms, 25 Gb/s at MTU 9000, 2–32 flows, with ECN or 1 MB", Rows: `steady/25G-9000/(.*-ecn|1M)/.*`, Metric: "jain", Least: 0.95},
	{Other: true, Text: "the same, 128 KB without ECN", Rows: `steady/25G-9000/128K/.*`, Metric: "jain", Least: 0.8},
	{Other: true, Text: "fairness (Jain) over 10 ms, 10 Gb/s and 20 µs, 2–128 flows, with ECN or 1 MB", Rows: `steady/10G/(.*-ecn|1M)/.*`, Metric: "jain", Least: 0.95},
	{Other: true, Text: "the same, 128 KB without ECN", Rows: `steady/10G/128K/.*`, Metric: "jain", Least: 0.8},
	{Other: true, Text: "goodput of bulk ÷ line, MTU 9000 and 10 Gb/s", Rows: `steady/(25G-9000|10G)/.*`, Metric: "goodput", Least: 0.97},
	{Other: true, Text: "warm incast of 64 KiB, ECN, 8–128 senders: time ÷ ideal", Rows: `incast/25G/.*-ecn/.*/64K`, Metric: "warm", Most: 1.3},
	{Other: true, Text: "cold incast of 1 MiB at MTU 9000, ECN, 2–32 senders: time ÷ ideal", Rows: `incast/25G-9000/.*-ecn/.*`, Metric: "cold", Most: 1.3},
	{Other: true, Text: "cold incast of 64 KiB at 10 Gb/s, ECN, 8–128 senders: time ÷ ideal", Rows: `incast/10G/.*-ecn/.*`, Metric: "cold", Most: 1.3},
	{Other: true, Text: "64 connections between two hosts: fairness (Jain) over 10 ms", Rows: `steady/25G/.*/64-from-1`, Metric: "jain", Least: 0.95},
	{Other: true, Text: "10 ms, a host of 10 Gb/s behind a port of 1 Gb/s: share of the line after 150 ms", Rows: `wan/1G-port`, Metric: "after", Least: 0.9},
	{Other: true, Text: "reroute from 8 to 200 µs: share of the line after 100 ms", Rows: `reroute/8µs-200µs`, Metric: "to 200 ms", Least: 0.8},
	{Other: true, Text: "reroute from 100 µs to 1 ms: the same", Rows: `reroute/100µs-1ms`, Metric: "to 200 ms", Least: 0.8},
	{Other: true, Text: "reroute to a shorter path: the same", Rows: `reroute/(300µs-8µs|1ms-100µs)`, Metric: "to 200 ms", Least: 0.8},
	{Other: true, Text: "a flow joins or leaves: ms until fair", Rows: `join/.*`, Metric: "fair after ms", Most: 5},
	{Other: true, Text: "cable cut for 10 ms to 1 s: ms until 0.9 of the line", Rows: `flap/.*`, Metric: "90 % ms", Most: 100},
	{Other: true, Text: "mixed racks by seed: use of the port", Rows: `mix/.*`, Metric: "used", Least: 0.95},
	{Other: true, Text: "mixed racks by seed: smallest share of a bulk flow ÷ fair share", Rows: `mix/.*`, Metric: "least share", Least: 0.2},
	{Other: true, Text: "20 µs beside 1 ms: larger ÷ smaller share", Rows: `pair/rtt/20us-1ms/.*`, Metric: "ratio", Most: 4},
	{Other: true, Text: "10 % reordered by 3–30 places, 8 µs: share of the rate in order", Rows: `reorder/8µs/10%`, Metric: "late/in order", Least: 0.8},
	{Other: true, Text: "beside four CUBIC flows, 100 µs and 1 ms: share of four of ours", Rows: `beside/cubic/10G-(100µs|1ms)/.*/4\+4`, Metric: "ours", Least: 0.2},
	{Other: true, Text: "the same: share of the CUBIC flows", Rows: `beside/cubic/10G-(100µs|1ms)/.*/4\+4`, Metric: "tcp", Least: 0.25},
	{Other: true, Text: "beside one NewReno flow, 100 µs: our share", Rows: `beside/newreno/.*/1\+1`, Metric: "ours", Least: 0.2},
	{Other: true, Text: "beside one DCTCP flow, ECN at 25 and 100 KB: our share", Rows: `beside/dctcp/.*/1\+1`, Metric: "ours", Least: 0.2},
}

// has reports whether a row belongs to the target.
func (t *Target) has(name string) bool {
	return regexp.MustCompile(`^(?:` + t.Rows + `)$`).MatchString(name)
}

// bound returns the bound in words.
func (t *Target) bound() string {
	if t.Least > 0 {
		return fmt.Sprintf("≥ %g", t.Least)
	}
	return fmt.Sprintf("≤ %g", t.Most)
}

// meets reports whether a value meets the target.
func (t *Target) meets(v float64) bool {
	return (t.Most == 0 || v <= t.Most) && (t.Least == 0 || v >= t.Least)
}

// Result is a target and the row that is the furthest from it.
type Result struct {
	Target
	Row   string
	Value float64
	Met   bool
}

// Judge finds the result of each target that has rows.
func Judge(rows []Row) (all []Result) {
	for _, t := range Targets() {
		r := Result{Target: t, Value: math.NaN()}
		for _, row := range rows {
			if !t.has(row.Name) {
				continue
			}
			if v, ok := row.Value(t.Metric); ok && (r.Row == "" || (t.Least > 0) == (v < r.Value)) {
				r.Row, r.Value = row.Name, v
			}
		}
		if r.Row != "" {
			r.Met = t.meets(r.Value)
			all = append(all, r)
		}
	}
	return all
}

// TargetCases returns the rows that the targets need.
func TargetCases() (all []Case) {
	for _, c := range Cases() {
		for _, t := range Targets() {
			if t.has(c.Name) {
				all = append(all, c)
				break
			}
		}
	}
	return all
}

// String returns one line.
func (r Result) String() string {
	met := "met   "
	if !r.Met {
		met = "MISSED"
	}
	return fmt.Sprintf("%s %8s %8s  %s  (%s)", met, format(r.Value), r.bound(), r.Text, r.Row)
}

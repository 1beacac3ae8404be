//go:build !race

package network

import "testing"

// bounds is the short form of the table of make network: rows that take little time, with one seed, and what their
// figures must not exceed: the targets of that table, where the decision names no other.
var bounds = []struct {
	row, metric string
	least, most float64 // 0: none
}{
	{"requests/25G/128K-ecn", "p50/alone", 0, 3},
	{"requests/25G/1M-ecn", "p50/alone", 0, 3},
	{"requests/25G/1M", "p50/alone", 0, 5},
	{"requests/25G-9000/1M-ecn", "p50/alone", 0, 5},
	{"steady/25G/128K/8", "jain", 0.95, 0},
	{"steady/25G/128K/8", "drop %", 0, 1},
	{"steady/25G/128K/32", "jain", 0.95, 0},
	{"steady/25G/128K/32", "drop %", 0, 6},
	{"steady/25G/128K/128", "jain", 0.8, 0},
	{"steady/25G/128K-ecn/8", "jain", 0.95, 0},
	{"steady/25G/128K-ecn/8", "goodput", 0.97, 0},
	{"steady/25G/128K-ecn/128", "jain", 0.95, 0},
	{"steady/25G/1M/8", "goodput", 0.97, 0},
	{"steady/25G/1M/32", "jain", 0.95, 0},
	{"steady/25G/1M-ecn/128", "jain", 0.95, 0},
	{"steady/10G/1M-ecn/32", "jain", 0.95, 0},
	{"steady/25G/1M/64-from-1", "jain", 0.95, 0},
	{"incast/25G/128K-ecn/8/64K", "cold", 0, 1.1},
	{"incast/25G/128K-ecn/32/64K", "cold", 0, 1.3},
	{"incast/25G/128K-ecn/128/64K", "cold", 0, 1.3},
	{"incast/25G/128K/8/64K", "cold", 0, 1.5},
	{"incast/25G/1M/32/64K", "cold", 0, 1.5},
	{"incast/25G/1M/8/1024K", "warm", 0, 1.1},
	{"pair/rtt/5us-100us/128K-ecn", "ratio", 0, 2},
	{"pair/mtu/1500-9000/1M", "ratio", 0, 2},
	{"pair/mtu/9000-9000/128K", "black holes", 0, 0.5},
	{"join/1M", "fair after ms", 0, 5},
	{"wan/1G", "after", 0.9, 0},
	{"wan/10G-9000", "after", 0.7, 0},
	{"wan/1G-9000-loss", "kept", 0.9, 0},
	{"reroute/8µs-300µs", "to 200 ms", 0.8, 0},
	{"reroute/1ms-100µs", "to 200 ms", 0.8, 0},
	{"flap/50ms", "90 % ms", 0, 100},
	{"reorder/8µs/10%", "late/in order", 0.8, 0},
	{"reorder/100µs/10%", "late/in order", 0.8, 0},
	{"trouble/all", "broken", 0, 0.5},
	{"mix/25G", "used", 0.95, 0},
	{"beside/dctcp/10G-100µs/K25K/1+1", "ours", 0.05, 0}, // decision 0020
}

// TestNetwork measures the rows of bounds. It has a subtest for each row.
func TestNetwork(t *testing.T) {
	all := make(map[string]Case)
	for _, c := range Cases() {
		all[c.Name] = c
	}
	rows := make(map[string]Row)
	for _, b := range bounds {
		t.Run(b.row, func(t *testing.T) {
			c, ok := all[b.row]
			if !ok {
				t.Fatal("there is no such row")
			}
			row, ok := rows[b.row]
			if !ok {
				row = Row{c.Name, c.Run(1)}
				rows[b.row] = row
				t.Log(row)
			}
			v, ok := row.Value(b.metric)
			if !ok {
				t.Fatalf("the row has no %s", b.metric)
			}
			if b.least > 0 && v < b.least {
				t.Errorf("%s %s, want %s at least", b.metric, format(v), format(b.least))
			}
			if b.most > 0 && v > b.most {
				t.Errorf("%s %s, want %s at most", b.metric, format(v), format(b.most))
			}
		})
	}
}

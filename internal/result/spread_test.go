package result

import "testing"

// TestSpread: the range of a ratio is calculated from one run and from several.
func TestSpread(t *testing.T) {
	tcp := PoolParts([]Result{times(TCP, 20, 30), times(TCP, 80, 90), times(TCP, 40, 50)})
	send := times(Send, 8, 9)
	rows := []Result{send, tcp}
	if s, ok := tcp.Spread(); !ok || s != (Range{20, 80}) || !tcp.Valid || len(tcp.Runs) != 0 || tcp.Repeats() != 1 {
		t.Errorf("of parts: %v, %t, %+v", s, ok, tcp)
	}
	if s, ok := RatioSpread(rows, &rows[0], TCP); !ok || s != (Range{0.1, 0.4}) {
		t.Errorf("ratio to parts: %v, %t", s, ok)
	}
	rows = []Result{Pool([]Result{send, times(Send, 4, 5), send}), Pool([]Result{tcp, times(TCP, 10, 11), invalid(times(TCP, 1, 1))})}
	if s, ok := rows[1].Spread(); !ok || s != (Range{10, tcp.Figure()}) || len(rows[1].Parts) != 0 {
		t.Errorf("of runs: %v, %t", s, ok)
	}
	if s, ok := RatioSpread(rows, &rows[0], TCP); !ok || s != (Range{8 / tcp.Figure(), 0.4}) {
		t.Errorf("ratio of rounds: %v, %t", s, ok)
	}
	for _, none := range [][]Result{{send}, {send, times(TCP, 1, 2)}, {send, invalid(tcp)}} {
		if s, ok := RatioSpread(none, &none[0], TCP); ok {
			t.Errorf("%v of nothing that varies", s)
		}
	}
}

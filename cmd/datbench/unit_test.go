package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/dat"

	"github.com/datxdp/datxdp/internal/result"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestParseSize(t *testing.T) {
	tests := []struct {
		in   string
		want int64
		out  string
	}{
		{"64", 64, "64 B"}, {"64B", 64, "64 B"}, {"4KiB", 4096, "4 KiB"}, {"4K", 4096, "4 KiB"},
		{"1 MiB", 1 << 20, "1 MiB"}, {"1G", 1 << 30, "1 GiB"}, {"1514", 1514, "1514 B"},
		{"", 0, ""}, {"0", 0, ""}, {"-1", 0, ""}, {"x", 0, ""}, {"9999999999GiB", 0, ""}, {"1.5K", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := parseSize(tt.in)
			if got != tt.want || (err != nil) != (tt.want == 0) {
				t.Errorf("got %d, %v, want %d", got, err, tt.want)
			}
			if err == nil && result.FormatSize(got) != tt.out {
				t.Errorf("printed: got %q, want %q", result.FormatSize(got), tt.out)
			}
		})
	}
}

// TestJSONKeys: scripts depend on the names, and on every one of them being there.
func TestJSONKeys(t *testing.T) {
	want := []string{"op", "metric", "size", "transport", "mode", "mtu", "p50_us", "p99_us", "p999_us", "msgs_per_s",
		"gbps", "samples", "retransmits", "drops", "valid", "reason"}
	b, err := json.Marshal(result.Result{})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sorted(want), sorted(slices.Collect(keys(got)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func keys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestCount(t *testing.T) {
	r := result.Result{Row: result.Row{Size: 1000}}
	r.Count(500, 250*time.Millisecond)
	if r.MsgsPerSec != 2000 || r.Gbps != 0.016 || r.Samples != 500 {
		t.Errorf("got %+v", r)
	}
	r.Count(0, 0)
	if r.Samples != 0 {
		t.Errorf("got %d samples", r.Samples)
	}
}

func TestLatencies(t *testing.T) {
	l := newLatencies()
	for i := 1; i <= 1000; i++ {
		l.record(time.Duration(i) * time.Microsecond)
	}
	l.record(-time.Second)
	l.record(time.Hour)
	var r result.Result
	l.fill(&r, time.Second)
	near := func(got *float64, want float64) bool { return got != nil && *got > want*0.998 && *got < want*1.002 }
	if !near(r.P50, 500) || !near(r.P99, 991) || r.Samples != 1002 || r.MsgsPerSec != 1002 {
		t.Errorf("got p50 %v, p99 %v, %+v", *r.P50, *r.P99, r)
	}
}

func TestJudge(t *testing.T) {
	rate := Spec{Row: result.Row{Metric: result.Rate}, Duration: time.Second}
	fine := evidence{row: rate, elapsed: time.Second, coreShare: []float64{0.99, -1}}
	tests := []struct {
		name   string
		result result.Result
		change func(*evidence)
		want   string
	}{
		{"fine", result.Result{Samples: 1}, func(*evidence) {}, ""},
		{"counted loss is fine", result.Result{Samples: 1}, func(e *evidence) { e.lost, e.counted = 5, 5 }, ""},
		{"uncounted loss", result.Result{Samples: 1}, func(e *evidence) { e.lost, e.counted = 5, 3 }, "2 frames were lost and no counter tells where"},
		{"nothing", result.Result{}, func(*evidence) {}, "nothing arrived"},
		{"nothing, starved", result.Result{}, func(e *evidence) { e.coreShare = []float64{0.1} },
			"nothing arrived; not saturated: a side had 10 % of a core, the host is busy with something else"},
		{"starved", result.Result{Samples: 1}, func(e *evidence) { e.coreShare = []float64{0.9, 0.25} },
			"not saturated: a side had 25 % of a core, the host is busy with something else"},
		{"short", result.Result{Samples: 1}, func(e *evidence) { e.elapsed = time.Second / 2 }, "measured for 500ms of 1s"},
		{"mode", result.Result{Samples: 1, Mode: "copy"}, func(e *evidence) { e.row.WantMode = "zero-copy" }, "asked for mode zero-copy, got copy"},
		{"few", result.Result{Samples: 999, Row: result.Row{Metric: result.Latency}}, func(*evidence) {}, "999 samples are too few for a p99.9"},
		{"two reasons", result.Result{Samples: 9, Row: result.Row{Metric: result.Latency}, Mode: "copy"}, func(e *evidence) { e.row.WantMode = "generic" },
			"asked for mode generic, got copy; 9 samples are too few for a p99.9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, r := fine, tt.result
			r.Valid = true
			tt.change(&e)
			judge(&r, e)
			if r.Reason != tt.want || r.Valid != (tt.want == "") {
				t.Errorf("got valid %t, %q, want %q", r.Valid, r.Reason, tt.want)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	r := result.Report{Results: []result.Result{{Valid: true}, {Valid: true}}}
	if err := r.Verdict(); err != nil {
		t.Errorf("all valid: %v", err)
	}
	r.Results[1].Invalidate("no")
	err := r.Verdict()
	if !errors.Is(err, result.ErrInvalid) || exitCode(err) != exitInvalid || exitCode(io.EOF) != exitUsage || exitCode(nil) != exitValid {
		t.Errorf("one invalid: %v", err)
	}
	if got, want := err.Error(), "1 of 2 results are not valid, for the reasons given"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	out, err := openOutput("-", &b)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.write(&result.Report{Results: []result.Result{{Row: result.Row{Op: result.Raw}, Valid: true}}}); err != nil {
		t.Fatal(err)
	}
	var r result.Report
	if err := json.Unmarshal(b.Bytes(), &r); err != nil || len(r.Results) != 1 {
		t.Errorf("standard output is not the report alone: %v\n%s", err, b.String())
	}
}

func TestRows(t *testing.T) {
	c := defaultConfig()
	c.ia, c.ops, c.metric = "xdp:eth0,zero-copy", []string{result.Send, result.Read}, []string{result.Latency, result.Bandwidth}
	var got []string
	for _, r := range c.rows("xdp") {
		got = append(got, r.Title()+" "+r.WantMode+" "+itoa(r.depth()))
	}
	want := []string{"round trip send 64 B zero-copy 1", "round trip read 64 B zero-copy 1",
		"bandwidth send 1 MiB zero-copy " + itoa(bandwidthDepth), "bandwidth read 1 MiB zero-copy " + itoa(bandwidthDepth)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMainRows: the main job is the rows of the contract.
func TestMainRows(t *testing.T) {
	cfg := defaultConfig()
	var got []string
	for _, phases := range mainPhasesXDP(&cfg.options, link{mtu: 1500}) {
		for _, ph := range phases {
			for _, r := range ph.rows {
				got = append(got, r.Metric+" "+r.Op+" "+itoa(r.MTU))
			}
		}
	}
	if diff := cmp.Diff(sorted(xdpRows), sorted(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cfg.ops, cfg.mtus = []string{result.Write}, []int{9000}
	if labs := mainPhasesXDP(&cfg.options, link{}); len(labs) != 1 || countRows(labs[0]) != 1 {
		t.Errorf("filtered: got %+v, want one row", labs)
	}
}

func TestAskRoundTrip(t *testing.T) {
	want := ask{
		row:    Spec{Row: result.Row{Op: result.Write, Metric: result.Rate, Size: 64, Depth: 512, Connections: 3, Churn: 1 << 30, Signal: 1 << 9, BothWays: true}, Bytes: 1 << 40, Warmup: time.Second, Duration: 2 * time.Second, Count: 1 << 33, More: true},
		remote: dat.RMRTriplet{Context: 1, Address: 2, Length: 3}, session: 1 << 60, index: 2, job: 1 << 61,
	}
	got, err := decodeAsk(want.encode())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func FuzzDecodeAsk(f *testing.F) {
	f.Add(ask{row: Spec{Row: result.Row{Op: result.Send, Metric: result.Latency, Size: 64, Depth: 1}}}.encode())
	f.Add(ask{row: Spec{Row: result.Row{Op: result.Read, Metric: result.Rate, Size: 64, Depth: 1, Connections: 4, BothWays: true}}, index: 3}.encode())
	f.Add(ask{row: Spec{Row: result.Row{Op: result.Send, Metric: result.Requests, Size: 64, Depth: 32, Churn: 1 << 20}}}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAsk(b)
		if err != nil {
			return
		}
		if again, err := decodeAsk(a.encode()); err != nil || !reflect.DeepEqual(a, again) {
			t.Errorf("got %+v, %v, want %+v", again, err, a)
		}
		w, err := workloadFor(a.row.Op, a.row.Metric, a.row.BothWays)
		if err != nil {
			return
		}
		if _, sh := w.shape(a.row); buffers(a.row, sh) > maxAskBytes || a.row.window() > maxWindow {
			t.Errorf("%+v asks for too much memory", a.row)
		}
	})
}

func TestTallyRoundTrip(t *testing.T) {
	want := tally{count: 1, elapsed: 2, retransmits: 3, drops: 4, coreShare: 0.5, digest: [32]byte{6}}
	b := want.encode(nil)
	if got := decodeTally(b); got != want || len(b) != tallySize {
		t.Errorf("got %+v in %d bytes, want %+v in %d", got, len(b), want, tallySize)
	}
}

func TestSchedule(t *testing.T) {
	s := newSchedule(Spec{Warmup: time.Second, Duration: time.Second})
	for _, tt := range []struct {
		after time.Duration
		want  byte
	}{{-time.Millisecond, phaseWarm}, {0, phaseMeasure}, {999 * time.Millisecond, phaseMeasure}, {time.Second, phaseEnd}} {
		if got := s.phase(s.measure.Add(tt.after)); got != tt.want {
			t.Errorf("%s after the warm-up: got phase %d, want %d", tt.after, got, tt.want)
		}
	}
}

func TestCounter(t *testing.T) {
	var c counter
	for _, phase := range []byte{phaseWarm, phaseWarm, phaseMeasure, phaseMeasure} {
		if c.add(phase) {
			t.Errorf("phase %d is the last", phase)
		}
	}
	if !c.add(phaseEnd) || c.n != 2 {
		t.Errorf("got %d messages, want 2", c.n)
	}
}

func TestTailLastLine(t *testing.T) {
	tests := []struct{ name, log, want string }{
		{"silent", "", "EOF"},
		{"one line", "what it said\n\n", "what it said"},
		{"panic", "x\npanic: boom\n\ngoroutine 1 [running]:\n", "panic: boom"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var l tail
			if _, err := l.Write([]byte(strings.Repeat("old\n", tailSize) + "\n")); err != nil {
				t.Fatal(err)
			}
			l.buf = nil
			if _, err := l.Write([]byte(tt.log)); err != nil {
				t.Fatal(err)
			}
			if got := l.lastLine(io.EOF); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestAgentProtocol: commands out of turn are refused, and the agent goes on.
func TestAgentProtocol(t *testing.T) {
	in := strings.NewReader(`{"do":"run","row":{}}` + "\n" + `{"do":"serve","station":{"kind":"smoke"}}` + "\n" + `{"do":"stop"}` + "\n")
	var out bytes.Buffer
	if err := newAgent(&host{}).serve(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	want := `{"error":"agent cannot \"run\" now"}` + "\n" + `{"error":"no traffic of kind \"smoke\""}` + "\n" + "{}\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPieces(t *testing.T) {
	p := pieces{total: 2500, size: 1000, window: 2}
	if p.count() != 3 || p.length(0) != 1000 || p.length(2) != 500 || p.place(2) != 0 {
		t.Errorf("got %d pieces, last of %d bytes at %d", p.count(), p.length(2), p.place(2))
	}
}

func TestLastWord(t *testing.T) {
	b := make([]byte, 128)
	lastWord(b[:64]).Store(^uint64(0))
	for i, got := range b {
		if want := i >= 56 && i < 64; (got != 0) != want {
			t.Errorf("byte %d: got %d", i, got)
		}
	}
}

func TestWorkloads(t *testing.T) {
	for _, metric := range runMetrics {
		for _, op := range datOps {
			w, err := workloadFor(op, metric, false)
			if metric == result.Requests && op != result.Send {
				if err == nil {
					t.Errorf("%s of %s: no error", metric, op)
				}
				continue
			}
			if err != nil {
				t.Error(err)
				continue
			}
			i, p := w.shape(Spec{Row: result.Row{Op: op, Metric: metric, Size: 64}})
			if i.messages == 0 || p.messages == 0 || i.sources == 0 || p.sources == 0 {
				t.Errorf("%s %s: shapes %+v, %+v lack room for the end of a row", metric, op, i, p)
			}
		}
	}
}

// TestWantMode: options behind the name of an adapter are no part of the mode.
func TestWantMode(t *testing.T) {
	for ia, want := range map[string]string{"xdp:eth0,copy": "copy", "xdp:eth0,zero-copy silence=5s": "zero-copy", "xdp:eth0 port=4000": "",
		"auto:eth0": "", "udp:10.0.0.1": ""} {
		if got := wantMode(ia); got != want {
			t.Errorf("%s: got %q, want %q", ia, got, want)
		}
	}
}

// TestProgress: an initiator that takes what it reads is not taken for one that does nothing; another one's packets count
// for nothing.
func TestProgress(t *testing.T) {
	peer := netip.MustParseAddr("10.0.0.2")
	w := &watch{peer: peer}
	row := dat.ConnInfo{Passive: true, Peer: peer, RecvNext: 7, SendOldest: 9}
	before := w.progress([]dat.ConnInfo{row})
	for name, change := range map[string]func(*dat.ConnInfo){
		"request": func(c *dat.ConnInfo) { c.RecvNext++ }, "acknowledgement": func(c *dat.ConnInfo) { c.SendOldest++ },
	} {
		now := row
		if change(&now); w.progress([]dat.ConnInfo{now}) == before {
			t.Errorf("%s: no progress", name)
		}
	}
	other := row
	other.Peer = netip.MustParseAddr("10.0.0.3")
	if w.progress([]dat.ConnInfo{row, other}) != before {
		t.Error("another client's packets count")
	}
}

// TestIdentity: a result names the conditions that are not the default, measured or not.
func TestIdentity(t *testing.T) {
	spelt := Spec{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, Depth: rateDepth, Signal: rateSignal, Connections: 1}}
	if want := (result.Row{Op: result.Send, Metric: result.Rate, Size: 64}); newResult(spelt).Row != want {
		t.Errorf("defaults: got %+v", newResult(spelt).Row)
	}
	odd := result.Row{Op: result.Send, Metric: result.Bandwidth, Size: 64, Depth: 3, Connections: 2, BothWays: true, Churn: 1, Realtime: true, Impair: "dup=1"}
	if got := failed(Spec{Row: odd}, io.EOF).Row; got != odd {
		t.Errorf("failed: got %+v, want %+v", got, odd)
	}
}

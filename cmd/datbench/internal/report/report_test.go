package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"

	"github.com/datxdp/datxdp/internal/result"
)

func read(t *testing.T, names ...string) (files []File) {
	t.Helper()
	for _, name := range names {
		r, err := result.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{name, r})
	}
	return files
}

func pageOf(t *testing.T, files []File) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, files); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// charts returns the number of pictures on a page.
func charts(html string) int { return strings.Count(html, `<svg role="img"`) }

// outside matches HTML that makes a browser load something.
var outside = regexp.MustCompile(`(?i)\b(src|srcset|href|action|poster|data)\s*=|url\(|@import|https?://|<(script|link|iframe|object|embed|img)\b`)

func TestPage(t *testing.T) {
	html := pageOf(t, read(t, "full"))
	if got, want := charts(html), 6; got != want {
		t.Errorf("got %d charts, want %d", got, want)
	}
	if found := outside.FindAllString(html, -1); len(found) > 0 {
		t.Errorf("it reaches out: %q", found)
	}
	for _, want := range []string{"1 of 24 results not valid", "not valid: not saturated: a side had 42 % of a core",
		"Distribution, 64 B, MTU 1500", "Beside kernel TCP", "million messages a second", "round trip, µs", "AMD EPYC", "1\u202f650\u202f000"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
	if rest := regexp.MustCompile(`#0[0-9A-F]0[0-9A-F]0[0-9A-F]`).FindString(html); rest != "" {
		t.Errorf("colour %s stands for a role that the page does not know", rest)
	}
}

// TestColours: the page has a colour for each series, in the light and in the dark style.
func TestColours(t *testing.T) {
	for _, r := range roles() {
		if n := strings.Count(pageText, " "+r.variable+": #"); n != 2 {
			t.Errorf("page.html gives %s a colour %d times, want 2", r.variable, n)
		}
	}
}

// TestSizes: several sizes give line charts; their distributions are folded.
func TestSizes(t *testing.T) {
	html := pageOf(t, read(t, "sizes"))
	if got, want := charts(html), 3+8; got != want {
		t.Errorf("got %d charts, want %d", got, want)
	}
	for _, want := range []string{"8 distributions, by size", "Median and p99 (dashed) against size, MTU 1500", ">256K</text>", "All 60 results are valid"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
}

// TestSideBySide: each chart has a panel for each file, also for a file without such rows.
func TestSideBySide(t *testing.T) {
	html := pageOf(t, read(t, "full", "sizes"))
	if got := strings.Count(html, `<div class="panel">`); got%2 != 0 || got < 12 {
		t.Errorf("got %d panels", got)
	}
	if !strings.Contains(html, "No valid row here.") || !strings.Contains(html, "<th>full</th><th>sizes</th>") {
		t.Error("a file is missing where it has nothing, or in the environment")
	}
}

// TestInvalidOnly: a page without valid rows shows the reasons. Text from a file is escaped.
func TestInvalidOnly(t *testing.T) {
	r := result.Result{Row: result.Row{Op: "<script>", Metric: result.Latency}, Reason: "<b>starved</b>"}
	html := pageOf(t, []File{{"<i>", &result.Report{Results: []result.Result{r, {Row: result.Row{Op: result.Send, Metric: result.Rate}}}}}})
	if charts(html) != 0 || strings.Contains(html, "<script>") || strings.Contains(html, "<b>") || strings.Contains(html, "<i>") ||
		!strings.Contains(html, "not valid: &lt;b&gt;starved") {
		t.Errorf("got\n%s", html)
	}
	if err := Write(&bytes.Buffer{}, nil); err == nil {
		t.Error("no files: no error")
	}
}

// TestOdd: impossible figures are drawn or left out, but never cause a panic.
func TestOdd(t *testing.T) {
	row := func(op, metric string, figure float64) result.Result {
		r := result.Result{Row: result.Row{Op: op, Metric: metric, Size: 64, MTU: 1500}, Valid: true, Samples: 1, MsgsPerSec: figure, Gbps: figure}
		if metric == result.Latency {
			r.SetTimes(result.Histogram{{Upper: figure, Count: 1}})
		}
		return r
	}
	for _, v := range []float64{0, -1, 5e-324, 1e-9, 1, 1e18, math.MaxFloat64} {
		for _, metric := range []string{result.Latency, result.Rate, result.Bandwidth, result.SHA256, "other"} {
			rows := []result.Result{row(result.Send, metric, v), row(result.Raw, metric, 1), row(result.TCP, metric, v)}
			var b bytes.Buffer
			err := Write(&b, []File{{"odd", &result.Report{Results: rows}}})
			if extreme := v > 0 && (v < 1e-100 || v > 1e100); err != nil && !extreme { // no axis reaches from 1 to these
				t.Errorf("%s %g: %v", metric, v, err)
			}
			if b.Len() > 4<<20 {
				t.Errorf("%s %g: the page has %d bytes", metric, v, b.Len())
			}
		}
	}
}

// TestFull: rows with other conditions than the plain rows have their own charts and columns.
func TestFull(t *testing.T) {
	row := func(op, metric string, change func(*result.Result)) result.Result {
		r := result.Result{Row: result.Row{Op: op, Metric: metric, Size: 64, MTU: 1500}, Valid: true, Samples: 1, MsgsPerSec: 2e6, Gbps: 1}
		if result.Timed(metric) {
			r.SetTimes(result.Histogram{{Upper: 6, Count: 20000}})
		}
		change(&r)
		return r
	}
	plain := func(*result.Result) {}
	var rows []result.Result
	for _, op := range []string{result.Raw, result.Send} {
		rows = append(rows, row(op, result.Latency, plain), row(op, result.Rate, plain))
	}
	rows = append(rows, row(result.Send, result.Latency, func(r *result.Result) { r.Churn = 1 << 30 }),
		row(result.Send, result.Rate, func(r *result.Result) { r.Connections = 64 }), row(result.Send, result.Requests, plain))
	html := pageOf(t, []File{{"full", &result.Report{Results: rows}}})
	if got, want := charts(html), 4+1+3; got != want {
		t.Errorf("got %d charts, want %d", got, want)
	}
	for _, want := range []string{"Distribution, 64 B, MTU 1500, beside 1 GiB of churned heap", "MTU 1500, 64 connections</text>", "million requests a second",
		"<th>p99 × raw</th>", "<th>churned heap</th>", "<td>1 GiB</td>", "<th>M requests/s</th>"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
}

// TestTransports: an operation over XDP and over kernel UDP is two series, in charts and in tables.
func TestTransports(t *testing.T) {
	row := func(op, metric, transport string, v float64) result.Result {
		r := result.Result{Row: result.Row{Op: op, Metric: metric, Size: 64, MTU: 1500, Transport: transport}, Valid: true, Samples: 1, Gbps: v, MsgsPerSec: v * 1e6}
		if metric == result.Latency {
			r.SetTimes(result.Histogram{{Upper: v, Count: 20000}})
		}
		return r
	}
	html := pageOf(t, []File{{"both", &result.Report{Results: []result.Result{
		row(result.Write, result.Bandwidth, result.TransportXDP, 6.25), row(result.Write, result.Bandwidth, result.TransportUDP, 4.75),
		row(result.TCP, result.Bandwidth, result.TransportTCP, 20), row(result.TCPShared, result.Bandwidth, result.TransportTCP, 5),
		row(result.Send, result.Latency, result.TransportXDP, 6), row(result.Send, result.Latency, result.TransportUDP, 30)}}}})
	for _, want := range []string{
		`<li><span class="key write"></span>RDMA write</li><li><span class="key write-udp"></span>RDMA write over UDP</li>`,
		`<li><span class="key tcp"></span>kernel TCP</li><li><span class="key shared"></span>kernel TCP beside XDP</li>`,
		`<td><span class="key send-udp"></span>send over UDP</td>`, ".key.write-udp { background: var(--write-udp) }",
		"var(--write-udp)", "var(--shared)", ">6.25</text>", ">4.75</text>", ">udp</text>",
		">0.31</text>", ">0.24</text>", // both beside kernel TCP
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, s := range all {
		if !strings.Contains(pageText, s.role.variable+": #") || strings.Count(pageText, s.role.variable+": #") != 2 {
			t.Errorf("%s has no colour in one of the two styles", s.role.variable)
		}
	}
}

func TestRoughText(t *testing.T) {
	for v, want := range map[float64]string{0.036: ".04", 0.84: ".84", 0.996: "1.0", 9.94: "9.9", 9.96: "10", 213: "213"} {
		if got := roughText(v); got != want {
			t.Errorf("%g: got %s, want %s", v, got, want)
		}
	}
}

// FuzzWrite: any result file gives a page or an error.
func FuzzWrite(f *testing.F) {
	f.Add([]byte(`{"results":[{"op":"send","metric":"lat","size":64,"valid":true,"p50_us":1,"histogram_us":[[1,2],[3,4]]}]}`))
	f.Add([]byte(`{"results":[{"op":"send","metric":"bw","size":64,"valid":true,"gbps":1},{"op":"raw","metric":"bw","size":1,"valid":true,"gbps":3}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r result.Report
		if json.Unmarshal(text, &r) == nil {
			_ = Write(io.Discard, []File{{"fuzz", &r}}) // an error is fine
		}
	})
}

// TestApart: labels of points that are close together do not overlap.
func TestApart(t *testing.T) {
	got := apart(plotter.XYs{{X: 1, Y: 10}, {X: 1, Y: 10.1}, {X: 1, Y: 900}}, span{1, 1000})
	if got[0].Y != 10 || got[1].Y < 14 || got[1].Y > 15 || got[2].Y != 900 {
		t.Errorf("got %v", got)
	}
}

func TestTicks(t *testing.T) {
	labels := func(all ticks) string {
		var out []string
		for _, tick := range all {
			if tick.Label != "" {
				out = append(out, tick.Label)
			}
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct{ got, want string }{
		{labels(linearTicks(4.56)), "0 1 2 3 4 5"},
		{labels(linearTicks(33.6)), "0 10 20 30 40"},
		{labels(linearTicks(0.15)), "0 0.05 0.1 0.15"},
		{labels(decades(4, 600)), "10 100"},
		{labels(decades(15, 90)), "20 50"},
		{labels(decades(1, 20000)), "1 10 100 1000 10\u202f000"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

// TestRepeated: charts show only the valid runs of a repeated row. Each chart and table says how many runs were left
// out and why; it gives each reason once.
func TestRepeated(t *testing.T) {
	run := func(op string, gbps float64, share int) result.Result {
		r := result.Result{Row: result.Row{Op: op, Metric: result.Bandwidth, Size: 1 << 20, MTU: 1500}, Valid: true, Samples: 1, MsgsPerSec: 1, Gbps: gbps}
		if share > 0 {
			r.Invalidate("not saturated: a side had %d %% of a core", share)
		}
		return r
	}
	pool := func(runs ...result.Result) result.Result { return result.Pool(runs) }
	lost := run(result.TCP, 1, 0)
	lost.Invalidate("the target died")
	rows := []result.Result{
		pool(run(result.Send, 5, 0), run(result.Send, 1, 12), run(result.Send, 5, 0)),
		pool(run(result.Write, 1, 40), run(result.Write, 7, 0), run(result.Write, 1, 20)),
		pool(run(result.Read, 1, 30), run(result.Read, 1, 30), run(result.Read, 1, 30)),
		lost,
	}
	html := pageOf(t, []File{{"repeated", &result.Report{Results: rows}}})
	const reason = "not saturated: a side had 12 to 40 % of a core"
	for _, want := range []string{
		"4 of 4 results not valid, 2 of them in some of their runs only",
		">5.00</text>", ">7.00</text>",
		`<p class="why">Left out: send run 2 of 3, RDMA write runs 1 and 3 of 3: ` + reason + "</p>",
		`<p class="why"><sup>1</sup> left out: send run 2 of 3, RDMA write runs 1 and 3 of 3, RDMA read each of 3 runs: ` + reason + "</p>",
		`<p class="why"><sup>2</sup> not valid: the target died</p>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(html, "not saturated"); n != 2 {
		t.Errorf("the reason stands %d times, want once below the chart and once below the table", n)
	}
	if n := strings.Count(html, `<tr class="invalid">`); n != 2 {
		t.Errorf("%d grey rows, want those without a valid run: 2", n)
	}
}

// TestTCPSpread: each ratio to kernel TCP is shown with its range.
func TestTCPSpread(t *testing.T) {
	rate := func(op string, v float64, parts ...float64) result.Result {
		return result.Result{Row: result.Row{Op: op, Metric: result.Rate, Size: 64, MTU: 1500}, Valid: true, Samples: 1, MsgsPerSec: v, Parts: parts}
	}
	html := pageOf(t, []File{{"tcp", &result.Report{Results: []result.Result{rate(result.Send, 4e6), rate(result.TCP, 2e6, 1e6, 4e6)}}}})
	for _, want := range []string{"<td>2.00 (1.00\u20134.00)</td>", "<th>spread of TCP</th>", "<td>1.00\u20134.00</td>",
		"Message rate, MTU 1500: kernel TCP itself was 1.00\u20134.00 million a second."} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
}

package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/datxdp/datxdp/internal/result"
)

// fileTables holds every row of a file, valid or not.
type fileTables struct {
	File   string
	Tables []table
}

type table struct {
	Title string
	Head  []string
	Rows  []row
	// Notes are the reasons why runs are left out, each once.
	Notes []note
}

// row is one result. Notes are the numbers of the reasons why it, or a run of it, is invalid.
type row struct {
	Series series
	Cells  []string
	Notes  []int
	// Invalid means that no run is valid.
	Invalid bool
}

// column is a heading and the texts below it. A column without texts is left out.
type column struct {
	head string
	of   func(*result.Result, []result.Result) string
}

// plain returns a column that needs only its own row.
func plain(head string, of func(*result.Result) string) column {
	return column{head, func(r *result.Result, _ []result.Result) string { return of(r) }}
}

var (
	firstColumns = []column{
		plain("size", func(r *result.Result) string { return result.FormatSize(r.Size) }),
		plain("MTU", func(r *result.Result) string { return strconv.Itoa(r.MTU) }),
	}
	timeColumns = []column{
		plain("min µs", func(r *result.Result) string { return micros(r.Min) }),
		plain("p50", func(r *result.Result) string { return micros(r.P50) }),
		plain("p90", func(r *result.Result) string { return micros(r.P90) }),
		plain("p99", func(r *result.Result) string { return micros(r.P99) }),
		plain("p99.9", func(r *result.Result) string { return micros(r.P999) }),
		plain("p99.99", func(r *result.Result) string { return micros(r.P9999) }),
		plain("max", func(r *result.Result) string { return micros(r.Max) }),
	}
	streamColumns = []column{
		plain("M messages/s", func(r *result.Result) string { return figure(r, r.MsgsPerSec/1e6, 3, r.Metric == result.Rate) }),
		plain("Gb/s", func(r *result.Result) string { return figure(r, r.Gbps, 2, true) }),
	}
	requestColumns = []column{
		plain("M requests/s", func(r *result.Result) string { return figure(r, r.MsgsPerSec/1e6, 3, true) }),
		plain("p50 µs", func(r *result.Result) string { return micros(r.P50) }),
		plain("p99", func(r *result.Result) string { return micros(r.P99) }),
		plain("p99.9", func(r *result.Result) string { return micros(r.P999) }),
		plain("max", func(r *result.Result) string { return micros(r.Max) }),
	}
	lastColumns = []column{
		{"× raw", ratioTo(result.Raw)},
		{"p99 × raw", func(r *result.Result, rows []result.Result) string {
			if r.Metric != result.Latency {
				return ""
			}
			return ratioText(result.Ratio(rows, r, result.Raw, result.P99))
		}},
		{"× TCP", func(r *result.Result, rows []result.Result) string {
			return ratioText(result.FigureRatio(rows, r, result.TCP)) + ratioSpread(rows, r)
		}},
		plain("spread of TCP", tcpSpread),
		plain("runs", func(r *result.Result) string { return whole(int64(len(r.Runs))) }),
		plain("kept", func(r *result.Result) string { return percent(r.Kept) }),
		plain("samples", func(r *result.Result) string { return whole(r.Samples) }),
		plain("resent", func(r *result.Result) string { return whole(int64(r.Retransmits)) }),
		plain("drops", func(r *result.Result) string { return whole(int64(r.Drops)) }),
		plain("mode", func(r *result.Result) string { return r.Mode }),
	}
)

var titles = []struct{ metric, title string }{
	{result.Latency, "Round trip"}, {result.Rate, "Message rate"}, {result.Requests, "Requests"}, {result.Bandwidth, "Bandwidth"}, {result.SHA256, "Bytes moved and compared"},
}

// tablesOf returns a table for each metric.
func tablesOf(f File) fileTables {
	out := fileTables{File: f.Name}
	for _, m := range titles {
		rows := ordered(slices.DeleteFunc(slices.Clone(f.Report.Results), func(r result.Result) bool { return r.Metric != m.metric }))
		slices.SortStableFunc(rows, func(a, b result.Result) int { return a.MTU - b.MTU })
		if len(rows) > 0 {
			out.Tables = append(out.Tables, tableOf(m.title, rows))
		}
	}
	return out
}

func tableOf(title string, rows []result.Result) table {
	middle := streamColumns
	switch rows[0].Metric {
	case result.Latency:
		middle = timeColumns
	case result.Requests:
		middle = requestColumns
	}
	columns := slices.DeleteFunc(slices.Concat(firstColumns, middle, conditionColumns(), lastColumns), func(c column) bool {
		return !slices.ContainsFunc(rows, func(r result.Result) bool { return c.of(&r, rows) != "" })
	})
	t := table{Title: title, Notes: notesOf(rows)}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	for i := range rows {
		line := row{Series: seriesOf(&rows[i]), Notes: numbersOf(t.Notes, i), Invalid: rows[i].ValidRuns() == 0}
		for _, c := range columns {
			line.Cells = append(line.Cells, c.of(&rows[i], rows))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// conditionColumns returns the columns of the conditions that distinguish measurements.
func conditionColumns() (out []column) {
	for _, c := range result.Columns() {
		out = append(out, plain(c.Heading, c.Of))
	}
	return out
}

func ratioTo(op string) func(*result.Result, []result.Result) string {
	return func(r *result.Result, rows []result.Result) string { return ratioText(result.FigureRatio(rows, r, op)) }
}

func ratioText(v *float64) string {
	if v == nil {
		return ""
	}
	return figureText(*v)
}

func micros(v *float64) string {
	if v == nil {
		return ""
	}
	if *v >= 1000 {
		return grouped(strconv.FormatFloat(*v, 'f', 0, 64))
	}
	return strconv.FormatFloat(*v, 'f', 1, 64)
}

func figure(r *result.Result, v float64, digits int, shown bool) string {
	if !shown || r.Samples == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func percent(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.1f %%", *v)
}

// whole formats a number with its thousands separated; "" for 0.
func whole(n int64) string {
	if n == 0 {
		return ""
	}
	return grouped(strconv.FormatInt(n, 10))
}

// grouped puts thin spaces between thousands.
func grouped(s string) string {
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

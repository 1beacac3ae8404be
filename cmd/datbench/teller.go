package main

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/datxdp/datxdp/internal/progress"
	"github.com/datxdp/datxdp/internal/result"
)

// teller prints the intervals of rows as they come, below a heading for each row.
type teller struct {
	pr     progress.Display
	w      io.Writer
	silent bool
	// row is what the heading names.
	row string
}

func (t *teller) tell(row Row, i result.Interval) {
	if t.silent {
		return
	}
	t.pr.Around(func() {
		if i.Start == 0 || t.row != row.title() {
			t.row = row.title()
			fmt.Fprintf(t.w, "%s\n%s\n", t.row, heading(row))
		}
		fmt.Fprintln(t.w, line(row, i))
	})
}

// heading names the columns of line.
func heading(row Row) string {
	if result.Timed(row.Metric) {
		return "   interval s     round trips    p50 µs    max µs  resent"
	}
	return "   interval s     transferred        rate       messages/s  resent"
}

// line is one interval. It fits a terminal of 80 columns.
func line(row Row, i result.Interval) string {
	span := fmt.Sprintf("%6.2f-%-6.2f", i.Start, i.End)
	if result.Timed(row.Metric) {
		return fmt.Sprintf("%s %14d %9s %9s %7d", span, i.Msgs, micros(i.P50), micros(i.Max), i.Retransmits)
	}
	perSecond := float64(i.Msgs) / (i.End - i.Start)
	return fmt.Sprintf("%s %15s %11s %16s %7d", span, bytesText(float64(i.Bytes)), bitsText(i.Gbps*1e9), grouped(perSecond), i.Retransmits)
}

// bytesText is an amount in binary units with three digits, as 1.23 GiB.
func bytesText(n float64) string { return scaled(n, 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB") }

// bitsText is a rate in decimal units with three digits, as 9.41 Gb/s.
func bitsText(n float64) string { return scaled(n, 1000, "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s") }

func scaled(n, base float64, units ...string) string {
	i := 0
	for ; n >= base && i < len(units)-1; i++ {
		n /= base
	}
	if i == 0 {
		return fmt.Sprintf("%.0f %s", n, units[0])
	}
	return fmt.Sprintf("%.*f %s", max(0, 2-int(math.Log10(max(n, 1)))), n, units[i])
}

// grouped is a whole number with its thousands apart, as 1 234 567.
func grouped(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/datxdp/datxdp/internal/result"
)

// group returns the title of the rows that are compared with one another, with their unit.
func (r *Row) group() string {
	what := map[string]string{
		result.Latency:   "round trip of %s, µs",
		result.Rate:      "messages of %s, million/s",
		result.Bandwidth: "stream of %s, Gb/s",
	}[r.Metric]
	size := fmt.Sprintf("%d B", r.Size)
	if r.Size >= 1<<20 {
		size = fmt.Sprintf("%d MiB", r.Size>>20)
	}
	return fmt.Sprintf(what, size) + ", " + phase{mtu: r.MTU, plain: !r.Offloads}.title()
}

// number formats a figure of the row's metric.
func (r *Row) number(v float64) string {
	switch r.Metric {
	case result.Latency:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case result.Rate:
		return strconv.FormatFloat(v/1e6, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// figure formats the peer's figure. A mean and an invalid figure have a mark.
func (r *Row) figure() string {
	switch {
	case r.Figure == 0:
		return "–"
	case r.Mean:
		return "~" + r.number(r.Figure)
	}
	return r.number(r.Figure)
}

func (r *Row) p99(v *float64) string {
	if v == nil {
		return ""
	}
	return r.number(*v)
}

func (r *Row) ours() string {
	if r.Ours == nil {
		return ""
	}
	return r.number(*r.Ours)
}

func (r *Row) ratio() string {
	if r.Ratio == nil {
		return ""
	}
	return strconv.FormatFloat(*r.Ratio, 'f', 2, 64)
}

// remark returns a mark for a row that has a note.
func (r *Row) remark() string {
	switch {
	case !r.Valid:
		return " (!)"
	case r.Note != "":
		return " (*)"
	}
	return ""
}

// op returns the operation that a peer is compared with.
func (r *Row) op() string {
	if r.Ours == nil {
		return ""
	}
	return r.Op
}

// columns are the headings after the row's number and name.
var columns = []any{"theirs", "p99", "ours", "p99", "by", "ratio"}

func (r *Row) cells() []any {
	if r.own() {
		return []any{"", "", r.figure(), r.p99(r.P99), "", ""}
	}
	return []any{r.figure(), r.p99(r.P99), r.ours(), r.p99(r.OursP99), r.op(), r.ratio()}
}

// build returns the table. The title of a group is above the group or, with titleColumn, in a column.
func (r *Report) build(titleColumn bool) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	s := t.Style()
	s.Format.Header = text.FormatDefault
	s.Box.PaddingLeft, s.Box.PaddingRight = "", " "
	s.Options = table.Options{SeparateHeader: true}
	t.SuppressTrailingSpaces()
	header := []any{"#", "peer"}
	if titleColumn {
		header = []any{"#", "what", "peer"}
	}
	header = append(header, columns...)
	t.AppendHeader(header)
	var configs []table.ColumnConfig
	for i, name := range header {
		if name != "what" && name != "peer" && name != "by" {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(configs)
	last := ""
	for i := range r.Rows {
		row := &r.Rows[i]
		name := []any{i + 1, row.Peer + row.remark()}
		switch title := row.group(); {
		case titleColumn:
			name = []any{i + 1, title, row.Peer + row.remark()}
		case title != last:
			t.AppendRow(table.Row{"", title})
			last = title
		}
		t.AppendRow(append(name, row.cells()...))
	}
	return t
}

// print writes the table as text, with the notes and the commands.
func (r *Report) print(w io.Writer) {
	fmt.Fprintln(w, r.build(false).Render())
	fmt.Fprintln(w)
	for _, line := range r.notes() {
		fmt.Fprintln(w, wrap(line))
	}
	fmt.Fprintln(w, "\nCommands, s on the server's host, c on the client's:")
	r.commands(w)
}

// wrap breaks a line to the width of a terminal.
func wrap(line string) string {
	lines := strings.Split(text.WrapSoft(line, 100), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// markdown returns the same in Markdown.
func (r *Report) markdown() []byte {
	w := &bytes.Buffer{}
	fmt.Fprintln(w, r.build(true).RenderMarkdown())
	fmt.Fprintln(w)
	for _, line := range r.notes() {
		fmt.Fprintln(w, "* "+line)
	}
	fmt.Fprintln(w, "\nCommands, `s` on the server's host, `c` on the client's:\n\n```text")
	r.commands(w)
	fmt.Fprintln(w, "```")
	return w.Bytes()
}

// commands lists the commands of the rows. Equal commands are listed once.
func (r *Report) commands(w io.Writer) {
	for i := 0; i < len(r.Rows); {
		row, first := r.Rows[i], i+1
		for i++; i < len(r.Rows) && r.Rows[i].Client == row.Client; i++ {
		}
		if row.Client != "" {
			fmt.Fprintf(w, "%5s s: %s\n      c: %s\n", span(first, i), row.Server, row.Client)
		}
	}
}

// span returns the numbers of consecutive rows as text.
func span(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

package result

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// field holds the tags of one field of Row.
type field struct {
	key, help, column string
	// title and short are texts with %v for the value; empty for no text.
	title, short string
	bytes        bool
	// optional means that the file omits the default value.
	optional bool
	index    int
}

// conditions are the fields of Row after Transport, in order.
var conditions = conditionsOf(reflect.TypeFor[Row]())

func conditionsOf(t reflect.Type) (out []field) {
	for i := range t.NumField() {
		out = append(out, fieldOf(t.Field(i), i))
	}
	return out[1+slices.IndexFunc(out, func(f field) bool { return f.key == "transport" }):]
}

func fieldOf(sf reflect.StructField, index int) field {
	f := field{index: index, help: sf.Tag.Get("help"), bytes: sf.Tag.Get("unit") == "bytes"}
	f.key, _, f.optional = strings.Cut(sf.Tag.Get("json"), ",")
	or := func(tag, otherwise string) string {
		switch text, ok := sf.Tag.Lookup(tag); {
		case !ok:
			return otherwise
		case text == "-":
			return ""
		default:
			return text
		}
	}
	plain := ", " + f.key
	if sf.Type.Kind() != reflect.Bool {
		plain += " %v"
	}
	f.column = or("column", f.key)
	f.title = or("title", plain)
	f.short = or("short", f.title)
	return f
}

// value returns a field as text; empty for the zero value.
func (f field) value(r *Row) string {
	v := reflect.ValueOf(r).Elem().Field(f.index)
	switch {
	case v.IsZero():
		return ""
	case f.bytes:
		return FormatSize(v.Int())
	case v.Kind() == reflect.Bool:
		return "yes"
	}
	return fmt.Sprint(v.Interface())
}

// texts joins the texts of the conditions that are set.
func (r Row) texts(of func(field) string) string {
	var b strings.Builder
	r = r.normal()
	for _, f := range conditions {
		if value := f.value(&r); value != "" {
			b.WriteString(strings.ReplaceAll(of(f), "%v", value))
		}
	}
	return b.String()
}

// cleared returns the row without the conditions that drop selects.
func (r Row) cleared(drop func(field) bool) Row {
	v := reflect.ValueOf(&r).Elem()
	for _, f := range conditions {
		if drop(f) {
			v.Field(f.index).SetZero()
		}
	}
	return r
}

// Conditions returns the conditions of the row as text, as in " × 8 at MTU 1500".
func (r Row) Conditions() string {
	return r.texts(func(f field) string { return cmp.Or(f.title, f.short) })
}

// Title returns the row in words: metric, operation, size, transport if it is kernel UDP, and conditions, without those
// that tables show in a column. For an impaired row it only says "impaired".
func (r Row) Title() string {
	s := MetricTitle(r.Metric) + " " + r.Op
	if r.Size > 0 {
		s += " " + FormatSize(r.Size)
	}
	if r.OverUDP() {
		s += " over udp"
	}
	impaired := r.Impair != ""
	r.Impair = ""
	if s += r.texts(func(f field) string { return f.title }); impaired {
		s += ", impaired"
	}
	return s
}

// Name returns the operation and, if there are several, the number of connections. It is not longer than "raw_asavie",
// for which the column is wide enough.
func (r Row) Name() string {
	if r.Connections > 1 {
		return fmt.Sprintf("%s × %d", r.Op, r.Connections)
	}
	return r.Op
}

// Label returns the operation with all conditions but the MTU, as short as possible.
func (r Row) Label() string { return r.Op + r.texts(func(f field) string { return f.short }) }

// MetricTitle returns a metric in words.
func MetricTitle(metric string) string {
	switch metric {
	case Latency:
		return "round trip"
	case Rate:
		return "message rate"
	case Requests:
		return "requests"
	case Bandwidth:
		return "bandwidth"
	case SHA256:
		return "SHA-256"
	}
	return metric
}

// Column is a condition in a table of rows.
type Column struct {
	Heading string
	// Of returns the value as text; empty for the default.
	Of func(*Result) string
	// Untitled means that no title shows the condition, so every table needs the column.
	Untitled bool
}

// Columns returns the columns of the optional conditions, in order.
func Columns() (out []Column) {
	for _, f := range conditions {
		if f.optional {
			out = append(out, Column{f.column, func(r *Result) string { return f.value(&r.Row) }, f.title == ""})
		}
	}
	return out
}

// Help returns a line for each condition: its key, padded to width columns, and its meaning.
func Help(width int) string {
	var b strings.Builder
	for _, f := range conditions {
		if f.optional {
			fmt.Fprintf(&b, "  %-*s%s\n", width-2, f.key, f.help)
		}
	}
	return b.String()
}

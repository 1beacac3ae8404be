package doctor

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Layout in columns: the name of a group, a line for each of its findings, and the remedy below the finding.
const (
	textWidth = 100
	foundAt   = 11 // column of the finding, after the severity
)

var colours = [...]text.Color{OK: text.FgGreen, Info: text.FgCyan, Warning: text.FgYellow, Error: text.FgRed}

// Print writes the report as text: the findings in groups, the number of errors and warnings, and the verdict. Set
// colour for a terminal.
func (r *Report) Print(w io.Writer, colour bool) error {
	var b strings.Builder
	group := ""
	for _, f := range r.Findings {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "%s\n", bold(group, colour))
		}
		f.print(&b, colour)
	}
	fmt.Fprintf(&b, "\n%s.\n%s\n", r.count(), bold(wrap(r.Verdict, textWidth), colour))
	_, err := io.WriteString(w, b.String())
	return err
}

// Print writes one finding, with the layout of a report.
func (f Finding) Print(w io.Writer, colour bool) error {
	var b strings.Builder
	f.print(&b, colour)
	_, err := io.WriteString(w, b.String())
	return err
}

func (f Finding) print(b *strings.Builder, colour bool) {
	word := fmt.Sprintf("%-*s", foundAt-2, f.Severity)
	if colour {
		word = colours[f.Severity].Sprint(word)
	}
	fmt.Fprintf(b, "  %s%s\n", word, hanging(f.Found))
	indent := strings.Repeat(" ", foundAt)
	if f.Means != "" {
		fmt.Fprintf(b, "%s%s\n", indent, hanging(f.Means))
	}
	if f.Fix != "" {
		fmt.Fprintf(b, "%s%s\n", indent, hanging("fix: "+f.Fix))
	}
	if f.Command != "" {
		fmt.Fprintf(b, "%s    %s\n", indent, bold(f.Command, colour)) // not wrapped, so that it can be copied
	}
}

// hanging wraps a text that begins after the severity.
func hanging(s string) string {
	return strings.ReplaceAll(wrap(s, textWidth-foundAt), "\n", "\n"+strings.Repeat(" ", foundAt))
}

// wrap breaks a text between words, and adds no trailing blanks.
func wrap(s string, width int) string {
	lines := strings.Split(text.WrapSoft(s, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// printable returns a text of another program or host that may go to a terminal: quoted, if it has control characters or
// is not UTF-8.
func printable(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func bold(s string, colour bool) string {
	if colour {
		return text.Bold.Sprint(s)
	}
	return s
}

// count returns the number of errors and warnings as text.
func (r *Report) count() string {
	errors, warnings := len(worst(r.Findings, Error, len(r.Findings))), len(worst(r.Findings, Warning, len(r.Findings)))
	if errors+warnings == 0 {
		return "No errors, no warnings"
	}
	return plural(errors, "error") + ", " + plural(warnings, "warning")
}

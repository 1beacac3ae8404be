package transport

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text of a peer that may go to a terminal: quoted, if it has control characters or is not UTF-8.
// Single bytes from 0x80 on are control characters too, for terminals with a character set of 8 bits.
func Printable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// printableError returns the text of an error, which a peer may have chosen. Each line of it is printable.
func printableError(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

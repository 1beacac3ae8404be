package result

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"unicode"
)

// FormatSize returns the shortest exact form of a number of bytes: 1 MiB, 64 B, 1514 B.
func FormatSize(n int64) string {
	for _, u := range []struct {
		name  string
		shift uint
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// RoughSize returns a number of bytes in binary units with three digits, as 1.23 GiB.
func RoughSize(n float64) string { return scaled(n, 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB") }

// BitRate returns a rate in decimal units with three digits, as 9.41 Gb/s.
func BitRate(n float64) string { return scaled(n, 1000, "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s") }

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

// OneLine joins the lines of a text into one.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Printable replaces each non-printable character of a text by a question mark. It is for texts from a peer or a file,
// because a terminal would interpret control characters.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// MakePrintable applies Printable to every string in the value that p points to. It follows structs, slices and
// pointers; the fields must be exported.
func MakePrintable(p any) { makePrintable(reflect.ValueOf(p).Elem()) }

func makePrintable(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(Printable(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			makePrintable(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			makePrintable(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			makePrintable(v.Elem())
		}
	default:
	}
}

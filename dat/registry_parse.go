package dat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parseRegistry parses the text of a registry. A line is
//
//	name u2.0 threadsafe|nonthreadsafe default|nondefault library version "instance data" "platform data"
//
// with white space between the fields. Any field may be in double quotes; between them a backslash escapes the next
// character. A number sign (#) begins a comment. Lines for the kernel's DAT (API version k1.2) are ignored. The result
// entries has the valid lines; the error names every invalid line.
func parseRegistry(text string) (entries []entry, err error) {
	for i, line := range strings.Split(text, "\n") {
		fields, ferr := splitFields(line)
		if ferr == nil && len(fields) == 0 {
			continue
		}
		e, user, perr := parseEntry(fields)
		if ferr != nil {
			perr = ferr
		}
		switch {
		case perr != nil:
			err = errors.Join(err, fmt.Errorf("line %d: %w", i+1, perr))
		case user:
			entries = append(entries, e)
		}
	}
	return entries, err
}

// parseEntry makes an entry from the fields of a line. The result user is false if the entry is for the kernel's DAT.
func parseEntry(f []string) (e entry, user bool, err error) {
	if len(f) != 8 {
		return e, false, fmt.Errorf("%d fields, want name, API version, thread safety, default, library, provider version, instance data and platform data", len(f))
	}
	if f[0] == "" || len(f[0]) >= MaxName {
		return e, false, fmt.Errorf("a name has 1 to %d bytes", MaxName-1)
	}
	e = entry{ProviderInfo: ProviderInfo{Name: f[0]}, library: f[4], version: f[5], instance: f[6], platform: f[7]}
	if user, err = e.parseVersion(f[1]); err != nil {
		return e, false, err
	}
	if e.ThreadSafe, err = either(f[2], "threadsafe", "nonthreadsafe"); err != nil {
		return e, false, err
	}
	if e.standard, err = either(f[3], "default", "nondefault"); err != nil {
		return e, false, err
	}
	return e, user, nil
}

// parseVersion parses an API version, such as u2.0 for uDAPL or k1.2 for the kernel's DAT. isUDAPL is true for uDAPL.
func (e *entry) parseVersion(s string) (isUDAPL bool, err error) {
	bad := fmt.Errorf("API version %q is not u or k and MAJOR.MINOR", s)
	if s == "" || s[0] != 'u' && s[0] != 'k' {
		return false, bad
	}
	major, minor, _ := strings.Cut(s[1:], ".")
	for _, n := range []struct {
		text  string
		value *uint32
	}{{major, &e.Major}, {minor, &e.Minor}} {
		v, err := strconv.ParseUint(n.text, 10, 31)
		if err != nil {
			return false, bad
		}
		*n.value = uint32(v)
	}
	return s[0] == 'u', nil
}

// either returns true for yes, false for no, and an error for any other word.
func either(s, yes, no string) (bool, error) {
	if s != yes && s != no {
		return false, fmt.Errorf("%q is neither %s nor %s", s, yes, no)
	}
	return s == yes, nil
}

// blank has the characters that separate fields.
const blank = " \t\r\v\f"

// splitFields splits a line into its fields. It drops the comment.
func splitFields(line string) ([]string, error) {
	var fields []string
	for {
		line = strings.TrimLeft(line, blank)
		if line == "" || line[0] == '#' {
			return fields, nil
		}
		var f string
		var err error
		if line[0] == '"' {
			f, line, err = quoted(line[1:])
		} else {
			f, line = plain(line)
		}
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
}

// plain splits the line after its first field, which is not quoted.
func plain(line string) (field, rest string) {
	if i := strings.IndexAny(line, blank+`"#`); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// quoted splits the line after its first field, which is quoted. The line begins after the opening quotation mark.
func quoted(line string) (field, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return b.String(), line[i+1:], nil
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("a quotation mark is not closed")
}

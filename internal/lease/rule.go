package lease

import (
	"fmt"
	"math"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
)

// words are the words of a rule, in the order of the documentation.
var words = []struct {
	name  string
	parse func(r *rule, value string) error
}{
	{"interface", (*rule).parseInterfaces},
	{"mode", (*rule).parseModes},
	{"leases", (*rule).parseLeases},
	{"memory", (*rule).parseMemory},
	{"rate", (*rule).parseRate},
	{"weight", (*rule).parseWeight},
}

// parseRule reads a user or a group, and words of the form name=value.
func parseRule(fields []string) (*rule, error) {
	r := &rule{modes: []Mode{Shared}, leases: defaultLeases, bytes: defaultBytes}
	if err := r.parseSubject(fields[0]); err != nil {
		return nil, err
	}
	var seen []string
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		if slices.Contains(seen, name) {
			return nil, fmt.Errorf("%s= is there twice: write it once", name)
		}
		seen = append(seen, name)
		if err := r.parseWord(name, value); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *rule) parseWord(name, value string) error {
	var names []string
	for _, w := range words {
		names = append(names, w.name+"=")
		if w.name != name {
			continue
		}
		if value == "" {
			return fmt.Errorf("%s has no value: write %[1]s=VALUE, without spaces", name)
		}
		if err := w.parse(r, value); err != nil {
			return fmt.Errorf("%s=: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf("%q is not a word: write one of %s", name, strings.Join(names, " "))
}

// parseSubject reads user:NAME or group:NAME. A name may be a number.
func (r *rule) parseSubject(s string) error {
	what, name, _ := strings.Cut(s, ":")
	var number string
	switch {
	case name == "" || what != "user" && what != "group":
		return fmt.Errorf("%q is neither user:NAME nor group:NAME", s)
	case name[0] >= '0' && name[0] <= '9':
		number = name
	case what == "user":
		u, err := user.Lookup(name)
		if err != nil {
			return err
		}
		number = u.Uid
	default:
		g, err := user.LookupGroup(name)
		if err != nil {
			return err
		}
		number = g.Gid
	}
	id, err := strconv.ParseUint(number, 10, 32)
	if err != nil || id == math.MaxUint32 { // (uid_t)-1 is no user
		return fmt.Errorf("%q is not a number of a user or a group", name)
	}
	r.group, r.id = what == "group", uint32(id)
	return nil
}

func (r *rule) parseInterfaces(list string) error {
	for pattern := range strings.SplitSeq(list, ",") {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" || len(pattern) > maxQuote {
			return fmt.Errorf("%q is not a pattern: write names with commas, as eth0,enp*", cut(pattern))
		}
		r.interfaces = append(r.interfaces, pattern)
	}
	return nil
}

func (r *rule) parseModes(list string) error {
	r.modes = nil
	for m := range strings.SplitSeq(list, ",") {
		if modeNumber(Mode(m)) == 0 {
			return fmt.Errorf("%q is not a mode: write shared, direct or shared,direct", cut(m))
		}
		r.modes = append(r.modes, Mode(m))
	}
	return nil
}

func (r *rule) parseLeases(v string) error {
	n, err := parseSize(v, 1)
	if err != nil || n > maxConnections-spareConnections {
		return fmt.Errorf("%q is not a number from 1 to %d", cut(v), maxConnections-spareConnections)
	}
	r.leases = int(n)
	return nil
}

func (r *rule) parseMemory(v string) (err error) {
	r.bytes, err = parseSize(v, 1<<10)
	return err
}

// parseRate reads bits a second.
func (r *rule) parseRate(v string) error {
	bits, err := parseSize(v, 1000)
	if err == nil && bits < 8 {
		err = fmt.Errorf("%q is less than a byte a second", cut(v))
	}
	r.limits.Rate = bits / 8
	return err
}

func (r *rule) parseWeight(v string) error {
	n, err := parseSize(v, 1)
	if err != nil || n > 1000 {
		return fmt.Errorf("%q is not a number from 1 to 1000", cut(v))
	}
	r.limits.Weight = uint32(n)
	return nil
}

// parseSize reads a positive number. If k is not 1, the suffixes K, M, G and T multiply it by powers of k.
func parseSize(v string, k uint64) (uint64, error) {
	digits, factor := v, uint64(1)
	if i := strings.IndexByte("KMGT", v[len(v)-1]); i >= 0 && k != 1 {
		digits = v[:len(v)-1]
		for range i + 1 {
			factor *= k
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a size: write it as 256M or 2G", cut(v))
	}
	return n * factor, nil
}

// cut shortens a text for an error.
func cut(s string) string { return s[:min(len(s), maxQuote)] }

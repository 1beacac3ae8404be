package identity

import (
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// words are the words of a line in the file of peers, in the order of the documentation.
var words = []struct {
	name  string
	parse func(p *Peer, value string) error
}{
	{"name", (*Peer).parseName},
	{"from", (*Peer).parseFrom},
	{"services", (*Peer).parseServices},
	{"memory", (*Peer).parseMemory},
	{"expires", (*Peer).parseExpires},
	{"connections", func(p *Peer, v string) error { return parseCount(&p.limits.Connections, v) }},
	{"half-open", func(p *Peer, v string) error { return parseCount(&p.limits.HalfOpen, v) }},
	{"rate", func(p *Peer, v string) error { return parseCount(&p.limits.Rate, v) }},
	{"bytes", (*Peer).parseBytes},
}

// parseWord reads a word of the form name=value; found tells whether it has a =. seen has the words before it.
func (p *Peer) parseWord(name, value string, found bool, seen map[string]bool) error {
	for _, w := range words {
		switch {
		case w.name != name:
			continue
		case !found || value == "":
			return fmt.Errorf("%s has no value: write %[1]s=VALUE, without spaces", name)
		case seen[name]:
			return fmt.Errorf("%s= is there twice: write it once", name)
		}
		seen[name] = true
		if err := w.parse(p, value); err != nil {
			return fmt.Errorf("%s=: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf("%s is not a word: write %s", quote(name), wordList())
}

func wordList() string {
	var names []string
	for _, w := range words {
		names = append(names, w.name+"=")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// likeKey matches a text that may be a misplaced key, or the larger part of one. keyInText matches a key within a text.
var (
	likeKey   = regexp.MustCompile(`^[0-9]*[A-Za-z+/][A-Za-z0-9+/]{19,}=*$`)
	keyInText = regexp.MustCompile(`[A-Za-z0-9+/]{43}=`)
)

// quote returns a text for an error. It hides a text that may be a misplaced key. Keys are longer than maxQuote.
func quote(s string) string {
	if len(s) > maxQuote || likeKey.MatchString(strings.TrimPrefix(s, secretPrefix)) {
		return fmt.Sprintf("a text of %d characters", len(s))
	}
	return strconv.Quote(s)
}

// maxQuote is the longest text that an error quotes.
const maxQuote = keyText - 2

// Redact hides keys in a text for people, which may have one in the place of a file or a name.
func Redact(s string) string { return keyInText.ReplaceAllString(s, "(a key)") }

// maxName is the size of the longest name.
const maxName = 40

func (p *Peer) parseName(v string) error {
	if len(v) > maxName || strings.ContainsFunc(v, notInName) {
		return fmt.Errorf("%s is not a name: write at most %d letters, digits and - _ . : @", quote(v), maxName)
	}
	p.name = v
	return nil
}

func notInName(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("-_.:@", r)
}

func (p *Peer) parseFrom(list string) error {
	for v := range strings.SplitSeq(list, ",") {
		prefix, err := parsePrefix(v)
		if err != nil {
			return err
		}
		p.from = append(p.from, prefix)
	}
	return nil
}

func parsePrefix(v string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(v)
	if a, e := netip.ParseAddr(v); e == nil && a.Zone() == "" {
		prefix, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil:
		return prefix, fmt.Errorf("%s is not an address or a prefix: write them as 10.0.0.1 or fd00::/8, with commas and no spaces between", quote(v))
	case prefix.Addr().Is4In6():
		return prefix, fmt.Errorf("%s has an IPv4 address in IPv6 form: write it as 10.0.0.0/8", quote(v))
	case prefix != prefix.Masked():
		return prefix, fmt.Errorf("%s has bits beyond the prefix: write %s", quote(v), prefix.Masked())
	}
	return prefix, nil
}

func (p *Peer) parseServices(list string) error {
	for v := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(v, "-")
		if !isRange {
			last = first
		}
		a, err := parseNumber(first)
		b, err2 := parseNumber(last)
		switch {
		case err != nil || err2 != nil:
			return fmt.Errorf("%s is not a connection qualifier: write numbers and ranges as 7,100-199,0x4d", quote(v))
		case a > b:
			return fmt.Errorf("%s is empty: write %d-%d", quote(v), b, a)
		}
		p.services = append(p.services, services{a, b})
	}
	return nil
}

// parseNumber reads a decimal number, or a hexadecimal number after 0x.
func parseNumber(s string) (uint64, error) {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		return strconv.ParseUint(hex, 16, 64)
	}
	return strconv.ParseUint(s, 10, 64)
}

func (p *Peer) parseMemory(v string) error {
	access, ok := map[string]Access{"none": NoAccess, "read": ReadAccess, "write": WriteAccess}[v]
	if !ok {
		return fmt.Errorf("%s is not an access: write none, read or write", quote(v))
	}
	p.limits.Memory = access
	return nil
}

func (p *Peer) parseExpires(v string) error {
	t, err := time.Parse(time.DateOnly, v)
	if err != nil {
		t, err = time.Parse(time.RFC3339, v)
	}
	if err != nil || t.Unix() <= 0 { // Year 1 would be the zero Time: never
		return fmt.Errorf("%s is not a time: write a date as 2027-01-31, or a time as 2027-01-31T18:00:00Z", quote(v))
	}
	p.expires = t
	return nil
}

// parseCount reads a limit. It is not 0: a peer that may have nothing has no line.
func parseCount(n *int, v string) error {
	i, err := strconv.ParseUint(v, 10, 31)
	if err != nil || i == 0 {
		return fmt.Errorf("%s is not a number from 1 to %d", quote(v), math.MaxInt32)
	}
	*n = int(i)
	return nil
}

// units are the units of a size, as exponents of 2.
var units = map[string]uint{"": 0, "K": 10, "KiB": 10, "M": 20, "MiB": 20, "G": 30, "GiB": 30}

func (p *Peer) parseBytes(v string) error {
	digits := strings.TrimRight(v, "KMGiB")
	shift, ok := units[v[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 63)
	if !ok || err != nil || n == 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%s is not a size: write it as 4096, 64K or 1GiB", quote(v))
	}
	p.limits.Bytes = int64(n) << shift
	if p.limits.Bytes < ConnectionBytes {
		return fmt.Errorf("%s is less than one connection needs, and permits none: write %dK or more", quote(v), ConnectionBytes>>10)
	}
	return nil
}

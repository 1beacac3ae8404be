package lease

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Policy says who may lease what. It does not change.
type Policy struct{ rules []*rule }

// rule is one line of a policy. Users and groups are numbers, as the kernel names the holder.
type rule struct {
	name       string // for errors: FILE:LINE, or --allow and the text
	group      bool   // id is that of a group
	id         uint32
	interfaces []string // patterns of path.Match; nil: all
	modes      []Mode
	leases     int    // of each user
	bytes      uint64 // of each user
	limits     Limits
}

// Subject is who asks: a process, with all of its groups.
type Subject struct {
	Holder
	Groups []uint32
}

// ParsePolicy reads the text of a policy file. file is its name, for errors. A line has a user or a group, then words;
// # begins a comment. Of the lines that match a request, the first one decides.
func ParsePolicy(file string, text []byte) (*Policy, error) {
	if !utf8.Valid(text) || bytes.ContainsRune(text, 0) {
		return nil, fmt.Errorf("%s: not a text in UTF-8", file)
	}
	p, n := &Policy{}, 0
	for line := range strings.Lines(string(text)) {
		n++
		content, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(content)
		if len(fields) == 0 {
			continue
		}
		r, err := parseRule(fields)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		r.name = fmt.Sprintf("%s:%d", file, n)
		p.rules = append(p.rules, r)
	}
	return p, nil
}

// Allow adds a rule behind the others. It has the form of a line of a policy file.
func (p *Policy) Allow(line string) error {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return errors.New("an empty rule: write user:NAME or group:NAME")
	}
	r, err := parseRule(fields)
	if err != nil {
		return err
	}
	r.name = strconv.Quote(line)
	p.rules = append(p.rules, r)
	return nil
}

// Empty tells whether the policy allows nothing.
func (p *Policy) Empty() bool { return len(p.rules) == 0 }

// connections returns how many connections the user of a process may have; 0: none.
func (p *Policy) connections(who *Subject) (n int) {
	if who.UID == 0 {
		n = spareConnections // to list
	}
	for _, r := range p.rules {
		if r.covers(who) {
			n = max(n, r.leases+spareConnections)
		}
	}
	return n
}

// find returns the rule that decides a request.
func (p *Policy) find(who *Subject, r *Request) (*rule, error) {
	for _, rule := range p.rules {
		if rule.covers(who) && rule.fits(r) {
			return rule, nil
		}
	}
	return nil, fmt.Errorf("%w: no rule allows user %d a %s lease of %s", ErrDenied, who.UID, r.Mode, r.Interface)
}

// covers tells whether a rule is for a process.
func (r *rule) covers(who *Subject) bool {
	if r.group {
		return who.GID == r.id || slices.Contains(who.Groups, r.id)
	}
	return who.UID == r.id
}

// fits tells whether a rule is for an interface and a mode.
func (r *rule) fits(q *Request) bool { return slices.Contains(r.modes, q.Mode) && r.has(q.Interface) }

func (r *rule) has(ifname string) bool {
	return r.interfaces == nil || slices.ContainsFunc(r.interfaces, func(pattern string) bool {
		ok, err := path.Match(pattern, ifname)
		return ok && err == nil
	})
}

// room returns nil if a user may take a lease of some bytes beside those that exist.
func (r *rule) room(uid uint32, bytes uint64, all []Held) error {
	leases := 0
	total := bytes
	for _, h := range all {
		if h.Holder.UID == uid && r.has(h.Interface) {
			leases++
			total += h.Bytes
		}
	}
	switch {
	case leases >= r.leases:
		return fmt.Errorf("%w: user %d has %d leases, as many as rule %s allows", ErrLimit, uid, leases, r.name)
	case total > r.bytes:
		return fmt.Errorf("%w: rule %s allows user %d %d bytes of frames, which with this lease would be %d", ErrLimit, r.name, uid, r.bytes, total)
	}
	return nil
}

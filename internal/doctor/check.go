package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/datxdp/datxdp/internal/ianame"
)

// scope is the object of a check. A check runs only if its object exists.
type scope int

const (
	scopeHost scope = iota
	scopeProcess
	scopeInterface
	scopePeer
)

// check is one row of the table of checks.
type check struct {
	// name appears in findings and documents. about describes the check to readers of the table.
	name, about string
	scope       scope
	// xdp means that only AF_XDP needs the check: udp: skips it, and auto: tolerates its errors.
	xdp bool
	// run returns nothing if there is nothing to report.
	run func(context.Context, *exam) []Finding
}

// examine runs the checks of some scopes. If the time is up, a check without findings counts as not run.
func (x *exam) examine(ctx context.Context, scopes ...scope) {
	for _, c := range table() {
		if !x.wants(c, scopes) {
			continue
		}
		var found []Finding
		if ctx.Err() == nil {
			found = c.run(ctx, x)
		}
		for _, f := range found {
			x.add(c, f)
		}
		if len(found) == 0 && ctx.Err() != nil {
			x.cutShort(ctx, c)
			return
		}
	}
}

// cutShort records the check at which the time was up. This is an error for auto: too, because nothing is known about
// UDP.
func (x *exam) cutShort(ctx context.Context, c check) {
	x.cut = "the examination took too long"
	fix := "run it again when the host and the network are idle; with --ia it looks at one interface alone"
	if errors.Is(ctx.Err(), context.Canceled) {
		x.cut, fix = "the examination was interrupted", "run it again"
	}
	if x.explaining {
		return
	}
	x.findings = append(x.findings, Finding{Check: c.name, Group: x.group(c.scope), Severity: Error,
		Found: fmt.Sprintf("%s: from %s on, nothing was looked at", x.cut, c.name), Fix: fix})
}

func (x *exam) wants(c check, scopes []scope) bool {
	for _, s := range scopes {
		if c.scope == s {
			return !(c.xdp && x.kind == ianame.UDP) && x.reaches(c)
		}
	}
	return false
}

// add adds a finding. If auto: is requested, an error of AF_XDP alone becomes a warning, because auto: then uses UDP.
func (x *exam) add(c check, f Finding) {
	f.Check, f.Group = c.name, x.group(c.scope)
	if f.Severity == Error && c.xdp && x.kind == ianame.Auto {
		f.Severity = Warning
		x.fallback = first(x.fallback, f.Found)
	}
	if f.Severity == Error {
		if c.scope == scopePeer {
			x.unreached = first(x.unreached, f.Found)
		} else {
			x.stopped = first(x.stopped, f.Found)
		}
	}
	x.findings = append(x.findings, f)
}

func first(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

func (x *exam) group(s scope) string {
	switch s {
	case scopeHost:
		return "host"
	case scopeProcess:
		return "process"
	case scopePeer:
		return "peer " + x.Peer.String()
	case scopeInterface:
	}
	if x.ifname != "" {
		return x.ifname
	}
	return x.addr.String()
}

// exam is one target under examination, with the facts found so far.
type exam struct {
	Target
	facts
	findings []Finding
	// stopped is the first error that makes the adapter unusable. fallback is the first error that makes auto: use UDP.
	// unreached is the first error on the way to the peer.
	stopped, fallback, unreached string
	// cut says why the examination is incomplete; empty if it is complete.
	cut string
}

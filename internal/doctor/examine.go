package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/datxdp/datxdp/internal/ianame"
)

const (
	// examineLimit limits an examination, including the waits for a silent peer.
	examineLimit = 10 * time.Second
	// explainLimit limits an explanation.
	explainLimit = 2 * time.Second
	// explainMost is the largest number of findings in an explanation.
	explainMost = 3
)

// Examine checks everything that a target needs. It returns an error only if the target's text is invalid. A fact that
// cannot be read is a finding, or is left out. Without an IA it examines every interface that could have an adapter; if
// one interface has no errors, the errors of the others become warnings. Examine takes at most ten seconds. If it runs
// out of time or the context ends, the findings contain an error.
//
// System calls: reading calls of netlink, ethtool and bpf(2). If the kernel does not list the owner of a queue, also
// socket and bind of AF_XDP. If a peer is given, a few packets to it.
func Examine(ctx context.Context, t Target) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, examineLimit)
	defer cancel()
	if err := t.resolve(); err != nil {
		return nil, err
	}
	r := &Report{IA: t.IA, Port: t.Port}
	if t.Peer.IsValid() {
		r.Peer = t.Peer.String()
	}
	if t.IA == "" && !t.HostOnly {
		examineAll(ctx, t, r)
		return r, nil
	}
	x := &exam{Target: t}
	x.learn()
	x.examine(ctx, scopeHost, scopeProcess, scopeInterface, scopePeer)
	r.Findings = x.findings
	r.finish(x.verdict())
	return r, nil
}

// Explain returns a few findings that may explain a failure. These are the errors of an examination or, if it has none,
// its warnings about the way to the peer. Explain takes at most two seconds and binds no queue. It returns nothing if
// it finds no explanation in time.
func Explain(ctx context.Context, t Target) []Finding {
	ctx, cancel := context.WithTimeout(ctx, explainLimit)
	defer cancel()
	t.Try, t.explaining = false, true
	r, err := Examine(ctx, t)
	if err != nil {
		return nil
	}
	if found := worst(r.Findings, Error, explainMost); len(found) > 0 {
		return found
	}
	var peers []Finding
	for _, f := range worst(r.Findings, Warning, len(r.Findings)) {
		if strings.HasPrefix(f.Group, "peer ") {
			peers = append(peers, f)
		}
	}
	return peers
}

// examineAll examines the host once, then every interface, or only the interface towards the peer.
func examineAll(ctx context.Context, t Target, r *Report) {
	host := &exam{Target: t}
	host.learn()
	host.examine(ctx, scopeHost, scopeProcess)
	r.Findings = host.findings
	names := candidates(t)
	if len(names) == 0 {
		r.Findings = append(r.Findings, noInterface)
	}
	cut := false
	var fine, verdicts []string
	var rest []*exam
	for _, name := range names {
		x := &exam{Target: t, stopped: host.stopped}
		x.ifname, x.IA = name, string(ianame.XDP)+":"+name
		x.learn()
		x.examine(ctx, scopeInterface, scopePeer)
		x.brief()
		cut = cut || x.cut != ""
		if x.stopped == "" && x.cut == "" {
			fine = append(fine, name)
		}
		verdicts = append(verdicts, x.verdict())
		rest = append(rest, x)
	}
	for _, x := range rest {
		r.Findings = append(r.Findings, x.relative(len(fine) > 0)...)
	}
	r.finish(verdictOfAll(host.stopped, fine, verdicts, cut))
}

// noInterface is the finding for a host without interfaces.
var noInterface = Finding{"interface", "interfaces", Error, "there is no interface but loopback", "No other host can be reached.",
	"give this host or this container a network; between programs of one host, --ia udp:127.0.0.1 works", ""}

// relative returns the findings. If another interface works, errors become warnings.
func (x *exam) relative(anotherWorks bool) []Finding {
	if !anotherWorks || x.stopped == "" && x.cut == "" {
		return x.findings
	}
	for i := range x.findings {
		x.findings[i].Severity = min(x.findings[i].Severity, Warning)
	}
	return x.findings
}

// brief removes the OK findings of an interface, except those that describe it, and what concerns other traffic, which
// belongs to an adapter that was named.
func (x *exam) brief() {
	x.findings = slices.DeleteFunc(x.findings, func(f Finding) bool {
		return f.Check == "other-traffic" || f.Check == "share" || f.Severity == OK && f.Group == x.ifname && f.Check != "interface" && f.Check != "address" && f.Check != "driver"
	})
}

// verdictOfAll sums up the verdicts on the interfaces. cut means that an interface was not examined completely.
func verdictOfAll(host string, fine, verdicts []string, cut bool) string {
	switch {
	case host != "":
		return "AF_XDP will not run on this host: " + host + ". Kernel UDP (udp:ADDRESS) may."
	case len(verdicts) == 0:
		return "There is no interface for an adapter to other hosts."
	case len(fine) == 0 && len(verdicts) > 1 && !cut:
		return fmt.Sprintf("AF_XDP will run on none of %d interfaces. %s", len(verdicts), verdicts[0])
	}
	return strings.Join(verdicts, " ")
}

// verdict says what will happen.
func (x *exam) verdict() string {
	where := x.where()
	var says string
	switch {
	case x.stopped == "" && x.cut != "":
		return fmt.Sprintf("It is not known whether it will work %s: %s.", where, x.cut)
	case x.HostOnly && x.stopped == "":
		return "This host can run AF_XDP."
	case x.stopped != "" && x.kind == ianame.UDP:
		return fmt.Sprintf("UDP will not work %s: %s.", where, x.stopped)
	case x.stopped != "" && x.kind == ianame.Auto:
		return fmt.Sprintf("Nothing will work %s, neither AF_XDP nor UDP: %s.", where, x.stopped)
	case x.stopped != "":
		return fmt.Sprintf("AF_XDP will not work %s: %s.", where, x.stopped)
	case x.kind == ianame.UDP:
		says = fmt.Sprintf("UDP will work %s", where)
	case x.fallback != "":
		says = fmt.Sprintf("Only UDP will work %s, because: %s", where, x.fallback)
	default:
		says = fmt.Sprintf("AF_XDP will run in %s %s", x.expected(), where)
	}
	if x.unreached != "" {
		return fmt.Sprintf("%s, but nothing will reach %v: %s.", says, x.Peer, x.unreached)
	}
	return says + "."
}

func (x *exam) where() string {
	switch {
	case x.HostOnly:
		return "on this host"
	case x.ifname == "":
		return "on " + x.addr.String()
	}
	return "on " + x.ifname
}

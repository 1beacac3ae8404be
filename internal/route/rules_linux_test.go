package route

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
)

// ruleWorld is a world whose end A has a second address of each family, and tables with different gateways.
type ruleWorld struct {
	*world
	sources, dests []netip.Addr
}

const ruleTable = 1001

func newRuleWorld(t *testing.T) *ruleWorld {
	w := &ruleWorld{world: newWorld(t), sources: []netip.Addr{{}, lab.A.Addr4(), lab.A.Addr6()}}
	for _, s := range []string{"10.73.0.50/24", "fd73::50/64"} {
		p := netip.MustParsePrefix(s)
		w.must(w.nl[lab.A].AddrAdd(w.veth[lab.A], &netlink.Addr{IPNet: ipNet(p), Flags: syscall.IFA_F_NODAD}))
		w.sources = append(w.sources, p.Addr())
	}
	for _, s := range []string{"192.0.2.1", "192.0.2.77", "2001:db8::1", "2001:db8::77"} {
		w.dests = append(w.dests, netip.MustParseAddr(s))
	}
	w.dests = append(w.dests, lab.B.Addr4(), lab.B.Addr6())
	return w
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// route adds a route to end A.
func (w *ruleWorld) route(dst, gateway string, table, kind int) {
	w.Helper()
	r := &netlink.Route{Dst: ipNet(netip.MustParsePrefix(dst)), Table: table, Type: kind}
	if kind == syscall.RTN_UNICAST {
		r.LinkIndex, r.Gw = w.table.index, netip.MustParseAddr(gateway).AsSlice()
	}
	w.must(w.nl[lab.A].RouteAdd(r))
}

// rule adds a rule to end A, for both families. change may replace its parts.
func (w *ruleWorld) rule(priority int, change func(r *netlink.Rule, family int)) {
	w.Helper()
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		r := netlink.NewRule()
		r.Family, r.Table, r.Priority = family, ruleTable, priority
		change(r, family)
		w.must(w.nl[lab.A].RuleAdd(r))
	}
}

// of returns one of two prefixes, by family.
func of(family int, v4, v6 string) *net.IPNet {
	if family == netlink.FAMILY_V4 {
		return ipNet(netip.MustParsePrefix(v4))
	}
	return ipNet(netip.MustParsePrefix(v6))
}

// The routes that this process derives from rules and tables are those of the kernel, for each kind of rule.
func TestRulesAgreeWithTheKernel(t *testing.T) {
	from := func(r *netlink.Rule, family int) { r.Src = of(family, "10.73.0.50/32", "fd73::50/128") }
	for name, set := range map[string]func(w *ruleWorld){
		"none": func(*ruleWorld) {},
		"from": func(w *ruleWorld) { w.rule(100, from) },
		"to": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, family int) { r.Dst = of(family, "192.0.2.64/26", "2001:db8::77/128") })
		},
		"not from": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, family int) { from(r, family); r.Invert = true })
		},
		"output interface": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.OifName = lab.Interface })
		},
		"another output interface": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.OifName = "lo" })
		},
		"not another output interface": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.OifName, r.Invert = "lo", true })
		},
		"own packets": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.IifName = "lo" })
		},
		"forwarded packets": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.IifName = lab.Interface })
		},
		"mark": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Mark = 7 })
		},
		"mark of no bits": func(w *ruleWorld) {
			mask := uint32(0xf0)
			w.rule(100, func(r *netlink.Rule, _ int) { r.Mark, r.Mask = 0, &mask })
		},
		"another user": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.UIDRange = netlink.NewRuleUIDRange(1, 1000) })
		},
		"suppressed default route": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Table, r.SuppressPrefixlen = syscall.RT_TABLE_MAIN, 0 })
			w.rule(200, func(r *netlink.Rule, _ int) {})
		},
		"goto": func(w *ruleWorld) {
			w.rule(300, from)
			w.rule(100, func(r *netlink.Rule, _ int) { r.Table, r.Goto = 0, 300 })
			w.rule(200, func(r *netlink.Rule, _ int) {})
		},
		"throw": func(w *ruleWorld) {
			w.route("192.0.2.1/32", "", ruleTable, syscall.RTN_THROW)
			w.route("2001:db8::1/128", "", ruleTable, syscall.RTN_THROW)
			w.rule(100, from)
		},
		"refusal": func(w *ruleWorld) {
			w.route("192.0.2.1/32", "", ruleTable, syscall.RTN_PROHIBIT)
			w.route("2001:db8::1/128", "", ruleTable, syscall.RTN_UNREACHABLE)
			w.rule(100, from)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRuleWorld(t)
			w.route("0.0.0.0/0", "10.73.0.101", syscall.RT_TABLE_MAIN, syscall.RTN_UNICAST)
			w.route("::/0", "fd73::101", syscall.RT_TABLE_MAIN, syscall.RTN_UNICAST)
			w.route("192.0.2.0/24", "10.73.0.102", ruleTable, syscall.RTN_UNICAST)
			w.route("2001:db8::/64", "fd73::102", ruleTable, syscall.RTN_UNICAST)
			set(w)
			w.must(w.table.readPrefixes())
			w.compare()
		})
	}
}

// compare compares the routes of all pairs of addresses with those of the kernel.
func (w *ruleWorld) compare() {
	w.Helper()
	for _, dst := range w.dests {
		for _, src := range w.sources {
			if src.IsValid() && src.Is4() != dst.Is4() {
				continue
			}
			want, err := w.table.lookup(ends{src, dst})
			got, ok := w.table.fib.Load().way(src, dst)
			if ok != (err == nil) || ok && got.via != want.via {
				w.Errorf("from %v to %v: by %v, %t; the kernel: by %v, %v", src, dst, got.via, ok, want.via, err)
			}
		}
	}
}

// Hops follow changes of rules: in a table that only a source selects, a peer is reached from that source alone, and no
// longer when the rule is gone.
func TestHopsFollowRules(t *testing.T) {
	w := newRuleWorld(t)
	for _, c := range []struct {
		family        int
		src, own, dst netip.Addr
		prefix        string
	}{
		{netlink.FAMILY_V4, w.sources[3], lab.A.Addr4(), w.dests[0], "192.0.2.1/32"},
		{netlink.FAMILY_V6, w.sources[4], lab.A.Addr6(), w.dests[2], "2001:db8::1/128"},
	} {
		via := lab.B.Addr4()
		if c.src.Is6() {
			via = lab.B.Addr6()
		}
		w.route(c.prefix, via.String(), ruleTable, syscall.RTN_UNICAST)
		r := netlink.NewRule()
		r.Family, r.Table, r.Src = c.family, ruleTable, ipNet(netip.PrefixFrom(c.src, c.src.BitLen()))
		w.must(w.nl[lab.A].RuleAdd(r))
		w.until("the rule", func() bool { _, ok := w.table.fib.Load().way(c.src, c.dst); return ok })
		h, err := w.table.Resolve(c.src, c.dst, patience)
		w.must(err)
		w.untilMAC(h, lab.B.MAC())
		if h.Source() != c.src {
			t.Errorf("source %v, want %v", h.Source(), c.src)
		}
		if _, err := w.table.Resolve(c.own, c.dst, patience); err == nil {
			t.Errorf("%v is reached from %v, which no rule selects", c.dst, c.own)
		}
		w.must(w.nl[lab.A].RuleDel(r))
		w.until("no route", func() bool { _, ok := h.MAC(); return !ok })
		w.table.Release(h)
	}
}

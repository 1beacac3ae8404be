package route

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
)

// fib answers route lookups in this process, as the kernel's forwarding information base does: policy rules
// (ip-rule(8)) select the table for a packet by its source and destination. It is immutable. It is for lookups that
// must not wait for the kernel.
//
// It knows what the kernel's rules match of UDP packets that this host sends without a firewall mark: addresses, ports,
// the output interface and the user.
type fib struct {
	rules4, rules6 []rule // in the order of their priority
}

// rule is a policy rule that can match.
type rule struct {
	priority int
	from, to peers
	invert   bool
	table    *prefixes
	shortest int  // routes with a shorter prefix are ignored (suppress_prefixlength)
	jump     int  // index of the rule with which the search continues; 0 for none
	refuses  bool // the rule refuses packets: unreachable, prohibit or blackhole
}

// peers are the sources or destinations that a rule selects. The zero value selects all.
type peers struct {
	addrs       netip.Prefix // the zero Prefix means every address
	first, last uint16       // ports; 0 means every port
}

func (p *peers) have(a netip.AddrPort) bool {
	return (p.addrs == netip.Prefix{} || p.addrs.Contains(a.Addr())) && (p.last == 0 || p.first <= a.Port() && a.Port() <= p.last)
}

// find returns the route of the first rule that has one; ok is false without a route.
func (f *fib) find(to flow) (g gateway, ok bool) {
	rules := f.rules6
	if to.dst.Addr().Is4() {
		rules = f.rules4
	}
	for i := 0; i < len(rules); i++ {
		r := &rules[i]
		if !r.matches(to) {
			continue
		}
		if r.refuses {
			return gateway{refuses: true}, true
		}
		if r.jump > 0 {
			i = r.jump - 1
			continue
		}
		if g, ok := r.table.find(to.dst.Addr(), r.shortest); ok && !g.throws {
			return g, true
		}
	}
	return g, false
}

// way returns the route of a flow; ok is false without a route.
func (f *fib) way(to flow) (w way, ok bool) {
	g, ok := f.find(to)
	if ok && !g.addr.IsValid() {
		g.addr = to.dst.Addr()
	}
	return way{via: g.addr, source: to.src.Addr(), mtu: g.mtu}, ok && !g.refuses && !g.local
}

func (r *rule) matches(f flow) bool { return (r.from.have(f.src) && r.to.have(f.dst)) != r.invert }

// scope is what rules can select besides addresses and ports.
type scope struct {
	device string // output interface; empty if the route decides about it
	vrf    int    // table of the VRF of the interface; 0 for none
	user   uint32
}

// readFIB reads the kernel's rules, and the routes for which gatewayOf returns true.
//
// System calls: sendto, recvfrom (netlink).
func readFIB(h *netlink.Handle, a *asker, s scope, gatewayOf func(*netlink.Route) (gateway, bool)) (*fib, error) {
	s.user = uint32(os.Geteuid())
	f := &fib{}
	for _, family := range []struct {
		number int
		rules  *[]rule
	}{{netlink.FAMILY_V4, &f.rules4}, {netlink.FAMILY_V6, &f.rules6}} {
		tables, err := listPrefixes(h, family.number, gatewayOf)
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		*family.rules = s.rules(listRules(h, a, family.number), tables)
	}
	return f, nil
}

// listRules lists the rules of a family, with the action of each in Type. A kernel without rules
// (CONFIG_IP_MULTIPLE_TABLES) behaves as with the default ones.
func listRules(h *netlink.Handle, a *asker, family int) []netlink.Rule {
	list, err := h.RuleList(family)
	if err != nil && len(list) == 0 {
		for _, table := range []int{syscall.RT_TABLE_LOCAL, syscall.RT_TABLE_MAIN, syscall.RT_TABLE_DEFAULT} {
			r := netlink.NewRule()
			r.Table, r.Priority = table, len(list)
			list = append(list, *r)
		}
	}
	if actions := a.actions(family); len(actions) == len(list) { // else the kernel reports a change, and all is read again
		for i := range list {
			list[i].Type = actions[i]
		}
	}
	return list
}

// rules returns the rules that can match. It leaves out rules whose table has no routes, and those without an action.
func (s scope) rules(list []netlink.Rule, tables map[int]*prefixes) (all []rule) {
	for i := range list {
		if r, ok := s.rule(&list[i], tables); ok {
			all = append(all, r)
		}
	}
	for i := range all {
		if target := all[i].jump; target > 0 {
			all[i].jump = len(all)
			for j := i + 1; j < len(all); j++ {
				if all[j].priority >= target {
					all[i].jump = j
					break
				}
			}
		}
	}
	return all
}

// actionNop is the action of a rule that does nothing (FR_ACT_NOP of linux/fib_rules.h), as a rule whose goto has no
// target. refusals are the actions that refuse packets; they have the numbers of such routes.
const actionNop = 3

var refusals = []uint8{syscall.RTN_BLACKHOLE, syscall.RTN_UNREACHABLE, syscall.RTN_PROHIBIT}

// rule converts one rule; ok is false if it cannot match or has no routes. jump of the result is a priority.
func (s scope) rule(from *netlink.Rule, tables map[int]*prefixes) (r rule, ok bool) {
	table := from.Table
	if table == syscall.RT_TABLE_UNSPEC {
		table = s.vrf // a rule of l3mdev
	}
	r = rule{priority: from.Priority, from: peersOf(from.Src, from.Sport), to: peersOf(from.Dst, from.Dport),
		invert: from.Invert, table: tables[table], shortest: from.SuppressPrefixlen + 1, jump: max(from.Goto, 0),
		refuses: slices.Contains(refusals, from.Type)}
	if r.table == nil && r.jump == 0 && !r.refuses || from.Type == actionNop {
		return r, false
	}
	if !s.selects(from) {
		r.from, r.to, r.invert = peers{}, peers{}, false // an inverted rule then always matches
		return r, from.Invert
	}
	return r, true
}

// selects reports whether a rule matches in all that it selects besides addresses and ports.
func (s scope) selects(r *netlink.Rule) bool {
	mask := ^uint32(0)
	if r.Mask != nil {
		mask = *r.Mask
	}
	return (r.IifName == "" || r.IifName == "lo") && (r.OifName == "" || r.OifName == s.device) &&
		r.Mark&mask == 0 && r.Tos == 0 && r.TunID == 0 && (r.IPProto == 0 || r.IPProto == syscall.IPPROTO_UDP) &&
		(r.UIDRange == nil || r.UIDRange.Start <= s.user && s.user <= r.UIDRange.End)
}

// peersOf converts a prefix and a range of ports. nil means all.
func peersOf(n *net.IPNet, ports *netlink.RulePortRange) (p peers) {
	if n != nil {
		bits, _ := n.Mask.Size()
		p.addrs = netip.PrefixFrom(address(n.IP), bits).Masked()
	}
	if ports != nil {
		p.first, p.last = ports.Start, ports.End
	}
	return p
}

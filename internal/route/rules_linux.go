package route

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/vishvananda/netlink"
)

// fib answers route lookups in this process, as the kernel's forwarding information base does: policy rules
// (ip-rule(8)) select the table for a packet by its source and destination. It is immutable. It is for lookups that
// must not wait for the kernel.
//
// It knows what the kernel's rules match of packets that this host sends without a firewall mark: source, destination,
// the output interface, the user, and UDP. It ignores rules that select ports.
type fib struct {
	rules4, rules6 []rule // in the order of their priority
}

// rule is a policy rule that can match.
type rule struct {
	priority int
	from, to netip.Prefix // the zero Prefix means every address
	invert   bool
	table    *prefixes
	shortest int // routes with a shorter prefix are ignored (suppress_prefixlength)
	jump     int // index of the rule with which the search continues; 0 for none
}

// find returns the route of the first rule that has one; ok is false without a route. The source is not valid if the
// kernel is to choose it.
func (f *fib) find(src, dst netip.Addr) (g gateway, ok bool) {
	rules := f.rules6
	if dst.Is4() {
		rules = f.rules4
	}
	for i := 0; i < len(rules); i++ {
		r := &rules[i]
		if !r.matches(src, dst) {
			continue
		}
		if r.jump > 0 {
			i = r.jump - 1
			continue
		}
		if g, ok := r.table.find(dst, r.shortest); ok && !g.throws {
			return g, true
		}
	}
	return g, false
}

// way returns the route from src to dst; ok is false without a route.
func (f *fib) way(src, dst netip.Addr) (w way, ok bool) {
	g, ok := f.find(src, dst)
	if ok && !g.addr.IsValid() {
		g.addr = dst
	}
	return way{via: g.addr, source: src, mtu: g.mtu}, ok && !g.refuses && !g.local
}

func (r *rule) matches(src, dst netip.Addr) bool {
	hit := (r.from == netip.Prefix{} || r.from.Contains(src)) && (r.to == netip.Prefix{} || r.to.Contains(dst))
	return hit != r.invert
}

// scope is what rules can select besides addresses.
type scope struct {
	device string // output interface; empty if the route decides about it
	vrf    int    // table of the VRF of the interface; 0 for none
	user   uint32
}

// readFIB reads the kernel's rules, and the routes for which gatewayOf returns true.
//
// System calls: sendto, recvfrom (netlink).
func readFIB(h *netlink.Handle, s scope, gatewayOf func(*netlink.Route) (gateway, bool)) (*fib, error) {
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
		*family.rules = s.rules(listRules(h, family.number), tables)
	}
	return f, nil
}

// listRules lists the rules of a family. A kernel without rules (CONFIG_IP_MULTIPLE_TABLES) behaves as with the default
// ones.
func listRules(h *netlink.Handle, family int) []netlink.Rule {
	list, err := h.RuleList(family)
	if err != nil && len(list) == 0 {
		for _, table := range []int{syscall.RT_TABLE_LOCAL, syscall.RT_TABLE_MAIN, syscall.RT_TABLE_DEFAULT} {
			r := netlink.NewRule()
			r.Table, r.Priority = table, len(list)
			list = append(list, *r)
		}
	}
	return list
}

// rules returns the rules that can match. It leaves out rules whose table has no routes.
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

// rule converts one rule; ok is false if it cannot match or has no routes. jump of the result is a priority.
func (s scope) rule(from *netlink.Rule, tables map[int]*prefixes) (r rule, ok bool) {
	table := from.Table
	if table == syscall.RT_TABLE_UNSPEC {
		table = s.vrf // a rule of l3mdev
	}
	r = rule{priority: from.Priority, from: prefixOrAny(from.Src), to: prefixOrAny(from.Dst), invert: from.Invert,
		table: tables[table], shortest: from.SuppressPrefixlen + 1, jump: max(from.Goto, 0)}
	if r.table == nil && r.jump == 0 {
		return r, false
	}
	if !s.selects(from) {
		r.from, r.to, r.invert = netip.Prefix{}, netip.Prefix{}, false // an inverted rule then always matches
		return r, from.Invert
	}
	return r, true
}

// selects reports whether a rule matches in all that it selects besides addresses.
func (s scope) selects(r *netlink.Rule) bool {
	mask := ^uint32(0)
	if r.Mask != nil {
		mask = *r.Mask
	}
	return (r.IifName == "" || r.IifName == "lo") && (r.OifName == "" || r.OifName == s.device) &&
		r.Mark&mask == 0 && r.Tos == 0 && r.TunID == 0 && (r.IPProto == 0 || r.IPProto == syscall.IPPROTO_UDP) &&
		r.Dport == nil && r.Sport == nil && (r.UIDRange == nil || r.UIDRange.Start <= s.user && s.user <= r.UIDRange.End)
}

// prefixOrAny converts a prefix; nil gives the zero Prefix.
func prefixOrAny(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(address(n.IP), bits).Masked()
}

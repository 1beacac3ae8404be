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
	bound          bool // sockets are bound to the interface
}

// Routes of ruleTable have ruleMTU, by which a test recognizes the table.
const (
	ruleTable = 1001
	ruleMTU   = 1400
)

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
		if table == ruleTable {
			r.MTU = ruleMTU
		}
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

func ports(first, last uint16) *netlink.RulePortRange { return netlink.NewRulePortRange(first, last) }

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
			w.bound = true
			w.rule(100, func(r *netlink.Rule, _ int) { r.OifName = lab.Interface })
		},
		"another output interface": func(w *ruleWorld) {
			w.bound = true
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
		"destination port": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Dport, r.IPProto = ports(17473, 17473), syscall.IPPROTO_UDP })
		},
		"another destination port": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Dport = ports(80, 443) })
		},
		"source port": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Sport, r.IPProto = ports(17473, 17473), syscall.IPPROTO_UDP })
		},
		"ranges of ports": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Sport, r.Dport = ports(17474, 60000), ports(1, 17473) })
		},
		"not a destination port": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Dport, r.Invert = ports(17473, 17473), true })
		},
		"port and source": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, family int) { from(r, family); r.Dport = ports(17473, 17473) })
		},
		"UDP": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.IPProto = syscall.IPPROTO_UDP })
		},
		"TCP to the port": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Dport, r.IPProto = ports(17473, 17473), syscall.IPPROTO_TCP })
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
		"unreachable": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, family int) { from(r, family); r.Table, r.Type = 0, syscall.RTN_UNREACHABLE })
		},
		"prohibit to": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, family int) {
				r.Dst = of(family, "192.0.2.64/26", "2001:db8::77/128")
				r.Table, r.Type = 0, syscall.RTN_PROHIBIT
			})
		},
		"blackhole for a port": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Dport, r.Table, r.Type = ports(17473, 17473), 0, syscall.RTN_BLACKHOLE })
		},
		"unreachable for another user": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) {
				r.UIDRange, r.Table, r.Type = netlink.NewRuleUIDRange(1, 1000), 0, syscall.RTN_UNREACHABLE
			})
		},
		"unreachable unless from": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, family int) {
				from(r, family)
				r.Invert, r.Table, r.Type = true, 0, syscall.RTN_UNREACHABLE
			})
		},
		"no action": func(w *ruleWorld) {
			w.rule(100, func(r *netlink.Rule, _ int) { r.Table, r.Type = 0, actionNop })
		},
		"goto past unreachable": func(w *ruleWorld) {
			w.rule(300, func(r *netlink.Rule, _ int) {})
			w.rule(100, func(r *netlink.Rule, family int) {
				r.Dst = of(family, "192.0.2.64/26", "2001:db8::77/128")
				r.Table, r.Goto = 0, 300
			})
			w.rule(200, func(r *netlink.Rule, _ int) { r.Table, r.Type = 0, syscall.RTN_UNREACHABLE })
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

// compare compares the routes of all flows with those of the kernel, and with those that the kernel uses for a UDP socket.
func (w *ruleWorld) compare() {
	w.Helper()
	for _, dst := range w.dests {
		for _, src := range w.sources {
			if src.IsValid() && src.Is4() != dst.Is4() {
				continue
			}
			for _, port := range []uint16{17473, 17474} {
				for _, own := range []uint16{17473, 17474} {
					w.compareFlow(flow{netip.AddrPortFrom(src, own), netip.AddrPortFrom(dst, port)})
				}
			}
		}
	}
}

func (w *ruleWorld) compareFlow(f flow) {
	w.Helper()
	want, err := w.table.lookup(f)
	got, ok := w.table.fib.Load().way(f)
	if ok != (err == nil) || ok && got.via != want.via {
		w.Errorf("%v: by %v, %t; the kernel: by %v, %v", f, got.via, ok, want.via, err)
	}
	if used := w.socketMTU(f); used != want.mtu && (want.mtu != 0 || used != 1500) {
		w.Errorf("%v: MTU %d; that of a UDP socket: %d", f, want.mtu, used)
	}
}

// socketMTU returns the MTU of the route that a UDP socket uses, or 0 if there is none.
func (w *ruleWorld) socketMTU(f flow) (mtu int) {
	w.Helper()
	family, level, option := syscall.AF_INET6, syscall.IPPROTO_IPV6, 24 // IPV6_MTU
	if f.dst.Addr().Is4() {
		family, level, option = syscall.AF_INET, syscall.IPPROTO_IP, 14 // IP_MTU
	}
	w.on(lab.A, func() error {
		fd, err := syscall.Socket(family, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
		w.must(err)
		defer syscall.Close(fd)
		if w.bound {
			w.must(syscall.BindToDevice(fd, lab.Interface))
		}
		w.must(syscall.Bind(fd, sockaddrOf(f.src, family)))
		if syscall.Connect(fd, sockaddrOf(f.dst, family)) == nil {
			mtu, err = syscall.GetsockoptInt(fd, level, option)
		}
		return err
	})
	return mtu
}

// sockaddrOf converts an address of a family; an address that is not valid becomes the wildcard.
func sockaddrOf(a netip.AddrPort, family int) syscall.Sockaddr {
	switch {
	case family == syscall.AF_INET6 && a.Addr().IsValid():
		return &syscall.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	case family == syscall.AF_INET6:
		return &syscall.SockaddrInet6{Port: int(a.Port())}
	case a.Addr().IsValid():
		return &syscall.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &syscall.SockaddrInet4{Port: int(a.Port())}
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
		w.until("the rule", func() bool { _, ok := w.table.fib.Load().way(flow{anyPort(c.src), anyPort(c.dst)}); return ok })
		h, err := w.table.Resolve(anyPort(c.src), anyPort(c.dst), patience)
		w.must(err)
		w.untilMAC(h, lab.B.MAC())
		if h.Source() != c.src {
			t.Errorf("source %v, want %v", h.Source(), c.src)
		}
		if _, err := w.table.Resolve(anyPort(c.own), anyPort(c.dst), patience); err == nil {
			t.Errorf("%v is reached from %v, which no rule selects", c.dst, c.own)
		}
		w.must(w.nl[lab.A].RuleDel(r))
		w.until("no route", func() bool { _, ok := h.MAC(); return !ok })
		w.table.Release(h)
	}
}

// Hops to one address differ by port as far as rules do, and follow changes of these rules.
func TestHopsFollowPorts(t *testing.T) {
	for name, set := range map[string]func(*netlink.Rule){
		"destination": func(r *netlink.Rule) { r.Dport = ports(17473, 17473) },
		"source":      func(r *netlink.Rule) { r.Sport, r.IPProto = ports(17473, 17473), syscall.IPPROTO_UDP },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRuleWorld(t)
			for _, table := range []int{syscall.RT_TABLE_MAIN, ruleTable} {
				w.route("192.0.2.0/24", lab.B.Addr4().String(), table, syscall.RTN_UNICAST)
				w.route("2001:db8::/64", lab.B.Addr6().String(), table, syscall.RTN_UNICAST)
			}
			w.rule(100, func(r *netlink.Rule, _ int) { set(r) })
			for _, dst := range []string{"192.0.2.1", "2001:db8::1"} {
				w.followPorts(netip.MustParseAddr(dst))
			}
		})
	}
}

// followPorts resolves an address with the port that a rule selects, and with another port.
func (w *ruleWorld) followPorts(dst netip.Addr) {
	w.Helper()
	hop := func(port uint16) *Hop {
		h, err := w.table.Resolve(netip.AddrPortFrom(netip.Addr{}, port), netip.AddrPortFrom(dst, port), patience)
		w.must(err)
		w.Cleanup(func() { w.table.Release(h) })
		return h
	}
	by, not := hop(17473), hop(17474)
	w.until("the rule", func() bool { return by.MTU() == ruleMTU && not.MTU() == 1500 })
	family := netlink.FAMILY_V6
	if dst.Is4() {
		family = netlink.FAMILY_V4
	}
	rules, err := w.nl[lab.A].RuleList(family)
	w.must(err)
	for i := range rules {
		if rules[i].Table == ruleTable {
			w.must(w.nl[lab.A].RuleDel(&rules[i]))
		}
	}
	w.until("no rule", func() bool { return by.MTU() == 1500 })
}

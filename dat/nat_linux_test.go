package dat

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// routed is two hosts and a router between them, each in a network namespace. Host 0 is the server, host 1 the client.
type routed struct {
	hosts  [2]*lab.Lab // side A is the host; the router is on side B of hosts[0]
	links  [2]string   // "xdp" or "udp"
	family int         // 4 or 6
}

// inRouter is an interface of the router, to a host.
func inRouter(host int) string { return fmt.Sprintf("to%d", host) }

// net returns the address of a host's network with the given last byte: 1 is the router, 2 the host.
func (r *routed) net(host, last int) netip.Prefix {
	if r.family == 6 {
		return netip.MustParsePrefix(fmt.Sprintf("fd88:%d::%d/64", host, last))
	}
	return netip.MustParsePrefix(fmt.Sprintf("10.88.%d.%d/24", host, last))
}

// service is an address of no host, which the router translates.
func (r *routed) service() netip.Addr { return r.net(7, 7).Addr() }

func (r *routed) addr(host int) netip.Addr { return r.net(host, 2).Addr() }
func (r *routed) absent() netip.Addr       { return r.net(0, 77).Addr() }

func (r *routed) open(host int, o Options) (ia *IA, err error) {
	name := "xdp:" + lab.Interface
	if r.links[host] == "udp" {
		name = "udp:" + r.addr(host).String()
	}
	err = r.hosts[host].Do(lab.A, func() (err error) {
		ia, err = Open(name, sharedKeys.complete(o))
		return err
	})
	return ia, err
}

// newRouted makes the namespaces, and loads the rules of nft(8) in the router. It skips the test if that is impossible.
func newRouted(t *testing.T, r *routed, rules string) {
	t.Helper()
	labtest.RequireXDP(t)
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Skipf("the rules of the router need nft: %v", err)
	}
	r.hosts = [2]*lab.Lab{labtest.New(t, lab.Options{}), labtest.New(t, lab.Options{})}
	for i, l := range r.hosts {
		err := l.Do(lab.B, func() error {
			err := labtest.Rename(lab.Interface, inRouter(i))
			if i > 0 && err == nil {
				err = labtest.Move(inRouter(i), r.hosts[0], lab.B)
			}
			return err
		})
		ok(t, errors.Join(err, r.hosts[0].Do(lab.B, func() error { return renumber(inRouter(i), lab.B, r.net(i, 1)) }),
			l.Do(lab.A, func() error {
				return errors.Join(renumber(lab.Interface, lab.A, r.net(i, 2)), labtest.AddDefaultRoute(lab.Interface, r.net(i, 1).Addr()))
			})))
	}
	ok(t, r.hosts[0].Do(lab.B, func() error {
		for _, file := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
			if err := os.WriteFile("/proc/sys/net/"+file, []byte("1"), 0); err != nil {
				return err
			}
		}
		cmd := exec.Command(nft, "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			if bytes.Contains(out, []byte("not supported")) || bytes.Contains(out, []byte("No such file")) {
				t.Skipf("this kernel lacks NAT or connection tracking: %v\n%s", err, out)
			}
			return fmt.Errorf("nft: %w\n%s", err, out)
		}
		return nil
	}))
}

// renumber gives an interface of a lab another address, and takes it up.
func renumber(name string, side lab.Side, to netip.Prefix) error {
	linkLocal := netip.MustParsePrefix(fmt.Sprintf("fe80::%d/64", to.Addr().AsSlice()[to.Addr().BitLen()/8-1])) // from which the kernel solicits neighbours
	err := errors.Join(labtest.SetUp(name), labtest.AddAddress(name, linkLocal), labtest.AddAddress(name, to))
	for _, old := range []netip.Prefix{netip.PrefixFrom(side.Addr4(), 24), netip.PrefixFrom(side.Addr6(), 64)} {
		_ = labtest.RemoveAddress(name, old) // a moved interface has lost it
	}
	return err
}

// Rules of the router. FAM is ip or ip6.
const (
	// masquerade chooses the client's port at random, as Kubernetes does (--random-fully).
	masquerade = `
table FAM sources {
	chain post {
		type nat hook postrouting priority 100
		oifname to0 masquerade fully-random
	}
}`
	service = `
table FAM services {
	chain pre {
		type nat hook prerouting priority -100
		FAM daddr SERVICE udp dport 17473 dnat to SERVER
	}
}`
	// firewall admits the client's packets to the service port, and the answers to them.
	firewall = `
table FAM firewall {
	chain pass {
		type filter hook forward priority 0
		policy drop
		ct state established accept
		iifname to1 udp dport 17473 accept
		meta l4proto ipv6-icmp accept
	}
}`
)

// all is the name of the case that combines the others. A short run has only this case.
const all = "service, masquerade and firewall"

// A client reaches a server through NAT and stateful firewalls, each over AF_XDP and over kernel UDP. Data flows in both
// directions.
func TestThroughRouter(t *testing.T) {
	for _, family := range []int{4, 6} {
		ip := map[int]string{4: "ip", 6: "ip6"}[family]
		for name, rules := range map[string]string{
			"routes":     "",
			"masquerade": masquerade,
			"service":    service,
			"firewall":   firewall,
			all:          service + masquerade + firewall,
		} {
			if testing.Short() && name != all {
				continue
			}
			for _, links := range [][2]string{{"xdp", "xdp"}, {"xdp", "udp"}, {"udp", "xdp"}, {"udp", "udp"}} {
				t.Run(fmt.Sprintf("IPv%d/%s/server %s, client %s", family, name, links[0], links[1]), func(t *testing.T) {
					r := &routed{links: links, family: family}
					newRouted(t, r, strings.NewReplacer("FAM", ip, "SERVICE", r.service().String(), "SERVER", r.addr(0).String()).Replace(rules))
					throughRouter(t, r, strings.Contains(rules, service))
				})
			}
		}
	}
}

func throughRouter(t *testing.T, r *routed, translated bool) {
	t.Helper()
	server, client := newHost(t, r, 0, Options{}), newHost(t, r, 1, Options{})
	server.listen(testQual, 4)
	if translated {
		server.addr = r.service()
	}
	x, y := client.pointWith(nil, 1<<20, 64), server.pointWith(nil, 1<<20, 64)
	join(x, y)
	fillRandom(x.mem, 3)
	ok(t, x.PostRDMAWrite(x.seg(0, len(x.mem)), 1, y.lmr.Remote(0, len(y.mem)), 0))
	x.done(x.request, 1, DTORDMAWrite, DTOSuccess, len(x.mem))
	y.memoryBarrier()
	same(t, y.mem, x.mem)
	x.memoryBarrier() // the engine of x writes there next
	fillRandom(y.mem, 4)
	ok(t, y.PostRDMAWrite(y.seg(0, len(y.mem)), 2, x.lmr.Remote(0, len(x.mem)), 0))
	y.done(y.request, 2, DTORDMAWrite, DTOSuccess, len(y.mem))
	x.memoryBarrier()
	same(t, x.mem, y.mem)
}

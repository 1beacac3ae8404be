package vm

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

// library is the provider library for C programs. It is missing if this host cannot build it.
const library = root + "/bin/vm/libdatxdp.so"

// dataTopics are the rules of uDAPL about data, which is what groups of packets change.
const dataTopics = "(dat_ep_post_send|dat_ep_post_recv|dat_ep_post_rdma_write|dat_ep_post_rdma_read|errors|flush|ordering)"

// groups tests groups of packets on this kernel (UDP_SEGMENT, UDP_GRO): the link itself; those rules of uDAPL that depend
// on a link; and of these rules the ones about data also without offloads, of the link and of the interface. Before Linux
// 6.11 the kernel refuses groups if the interface computes no checksums.
func groups(t *testing.T, n *network) {
	n.install(t, "udplink.test")
	n.install(t, "dat.test")
	first := n.machines[0]
	n.runTests(t, first, "udplink.test -test.short", "Group|Kept|ReceiveWindow|Refused")
	n.onEachLink(t, func(t *testing.T, m *machine, link string) {
		topics := ""
		if link != "udp" {
			topics = "/^" + dataTopics + "$"
		}
		n.runTests(t, m, "dat.test -test.short", "^TestConformance$/^"+link+"$"+topics)
	})
	n.runTests(t, first, "dat.test -test.short", "^TestConformancePlainVeth$/^udp$/^(ordering|dat_ep_post_rdma_write)$")
}

// providerTests runs Debian's dtest, its variants, and dapltest over kernel UDP, with and without offloads of the link and
// of the interface. It leaves out runs in which both ends poll memory for many round trips, because each trip takes
// several scheduling quanta. It also leaves out runs that take a minute here and show nothing about the kernel that others
// do not: a hundred connections of dtestcm, and sends of 1 MiB beside writes and reads of that size.
func providerTests(t *testing.T, n *network) {
	if _, err := os.Stat(library); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this host cannot build the provider library: it needs gcc and libdapl-dev")
	}
	n.install(t, "libdatxdp.so")
	n.install(t, "libdatxdp.test")
	const short = "libdatxdp.test -test.short"
	n.onEachLink(t, func(t *testing.T, m *machine, link string) {
		n.runTests(t, m, short, "^TestDTest$/^"+link+"$/^(dtest -P ia -b 4096 -B 50( -[cp]| -w -u)?|dtestsrq -P ia|dtestx -P ia)$")
		n.runTests(t, m, short, "^TestTransaction$/^"+link+"$/^-T (T -i 100 -V client SR|T -i 20 -V client SR 1024 16 |T -i 4 -V client|P -i 200 -p 4)")
	})
	n.runTests(t, n.machines[0], short, "^TestFunction$/^udp$")
}

// onEachLink calls run for kernel UDP with and without offloads, at the same time, each on a machine of its own.
func (n *network) onEachLink(t *testing.T, run func(*testing.T, *machine, string)) {
	t.Helper()
	t.Run("links", func(t *testing.T) {
		for i, link := range []string{"udp", "udp without offload"} {
			t.Run(link, func(t *testing.T) {
				t.Parallel()
				run(t, n.machines[i], link)
			})
		}
	})
}

// install copies a program of bin/vm to the machines.
func (n *network) install(t *testing.T, program string) {
	t.Helper()
	n.onEach(func(m *machine) {
		n.ssh(t, m, root+"/bin/vm/"+program, "cat >/run/"+program+" && chmod +x /run/"+program)
	})
}

// runTests runs tests of an installed program on a machine. At least one must pass, and more than are skipped.
func (n *network) runTests(t *testing.T, m *machine, program, run string) {
	t.Helper()
	begin := time.Now()
	out := n.ssh(t, m, os.DevNull,
		"cd /run && DATXDP_CONFORMANCE=links DATXDP_PROVIDER=/run/libdatxdp.so ./"+program+" -test.v -test.run '"+run+"' -test.timeout 4m")
	passed, skipped := strings.Count(out, "--- PASS"), strings.Count(out, "--- SKIP")
	if passed == 0 || skipped > passed {
		t.Errorf("%s %s: %d passed and %d skipped:\n%s", program, run, passed, skipped, out)
	}
	t.Logf("%s %s: %d passed, %d skipped, %.0f s", program, run, passed, skipped, time.Since(begin).Seconds())
}

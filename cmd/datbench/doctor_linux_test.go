package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/doctor"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// fits matches the verdict for a veth without faults. Before Linux 6.3 its mode is unknown until it is opened.
const fits = `^AF_XDP will run in (native copy mode|the best mode that the driver grants) on veth0`

// TestDoctorSound: doctor reports no fault on a veth, also with a server at the peer.
func TestDoctorSound(t *testing.T) {
	p := newPatient(t)
	p.sound(p.doctor("--ia", "xdp:veth0"), fits)
	p.sound(p.doctor(), fits)
	tried := p.doctor("--ia", "xdp:veth0", "--try")
	p.sound(tried, "AF_XDP will run in copy mode on veth0.")
	p.finds(tried, "try", doctor.OK, "a frame was transmitted on 1 queue of 1 and came back", "")
	p.sound(p.doctor("--ia", "auto:veth0"), fits)
	p.sound(p.doctor("--ia", "udp:10.73.0.1"), "UDP will work on 10.73.0.1.")
	for _, ia := range []string{"xdp:veth0", "udp:10.73.0.2"} {
		s := inLab(t, p.l, lab.B, "server", "--ia", ia)
		s.awaitLine(t, `^serving on`)
		r := p.doctor("--ia", "xdp:veth0", "--peer", "10.73.0.2")
		p.sound(r, fits)
		p.finds(r, "reach", doctor.OK, "an adapter answers at 10.73.0.2:17473", "")
		p.finds(r, "path-mtu", doctor.OK, "packets of 1500 bytes pass", "")
		p.sound(p.doctor("--peer", "10.73.0.2"), fits)
		endServer(t, s)
	}
}

// TestDoctorLinkLocal: a link-local peer is reached through the interface of the adapter's address, also if it is named
// without a zone.
func TestDoctorLinkLocal(t *testing.T) {
	p := newPatient(t)
	for s, addr := range map[lab.Side]string{lab.A: "fe80::73:1/64", lab.B: "fe80::73:2/64"} {
		err := p.l.Do(s, func() error { return labtest.AddAddress(lab.Interface, netip.MustParsePrefix(addr)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	s := inLab(t, p.l, lab.B, "server", "--ia", "udp:fe80::73:2%veth0")
	s.awaitLine(t, `^serving on`)
	for _, peer := range []string{"fe80::73:2", "fe80::73:2%veth0"} {
		r := p.doctor("--ia", "udp:fe80::73:1%veth0", "--peer", peer)
		p.sound(r, "UDP will work on fe80::73:1%veth0.")
		p.finds(r, "reach", doctor.OK, `an adapter answers at \[fe80::73:2%veth0\]:17473`, "")
		p.finds(r, "path-mtu", doctor.OK, "packets of 1500 bytes pass", "")
	}
	endServer(t, s)
}

// TestDoctorRunning: doctor examines a running program by its metrics, before and after the program's first packet.
func TestDoctorRunning(t *testing.T) {
	const metrics = "127.0.0.1:9404"
	p := newPatient(t)
	s := inLab(t, p.l, lab.A, "server", "--ia", "xdp:veth0", "--metrics", metrics)
	s.awaitLine(t, `^serving on`)
	p.finds(p.doctor("--metrics", metrics), "queues-open", doctor.Info, "no packet has arrived on queue 0 yet", "datbench doctor --metrics")
	r := inLab(t, p.l, lab.B, "doctor", "--ia", "xdp:veth0", "--peer", "10.73.0.1") // sends a packet to the server's adapter
	r.wait(t)
	unproven := func(f doctor.Finding) bool { return f.Check == "queues-open" && f.Severity == doctor.Info }
	now := p.doctor("--metrics", metrics)
	for end := time.Now().Add(20 * time.Second); slices.ContainsFunc(now.Findings, unproven) && time.Now().Before(end); {
		now = p.doctor("--metrics", metrics) // again, because the server reads its counters once a second
	}
	p.finds(now, "queues-open", doctor.OK, "1 queue: every one has transmitted and received", "")
	endServer(t, s)
}

// TestDoctorDown: the interface is down, or the interface of its peer is down.
func TestDoctorDown(t *testing.T) {
	p := newPatient(t)
	if err := p.l.SetUp(lab.A, false); err != nil {
		t.Fatal(err)
	}
	for _, ia := range []string{"xdp:veth0", "auto:veth0", "udp:10.73.0.1"} {
		p.finds(p.doctor("--ia", ia), "up", doctor.Error, "^veth0 is down$", "bring it up")
	}
	f := p.finds(p.doctor(), "up", doctor.Error, "^veth0 is down$", "bring it up")
	p.types(f.Command, "ip link set dev veth0 up")
	if err := p.l.SetUp(lab.A, true); err != nil { // waits for the carrier
		t.Fatal(err)
	}
	p.sound(p.doctor("--ia", "xdp:veth0"), fits)
	p.works()
	if err := p.l.SetUp(lab.B, false); err != nil {
		t.Fatal(err)
	}
	p.finds(p.doctor("--ia", "xdp:veth0"), "carrier", doctor.Error, "the other end of the veth pair is down", "bring the other end up")
}

// TestDoctorMTU: the two ends have different MTUs, or the MTU is too small for the protocol.
func TestDoctorMTU(t *testing.T) {
	p := newPatient(t)
	s := inLab(t, p.l, lab.B, "server", "--ia", "xdp:veth0")
	s.awaitLine(t, `^serving on`)
	peer := []string{"--ia", "xdp:veth0", "--peer", "10.73.0.2"}
	p.types("ip link set dev veth0 mtu 9000", "ip link set dev veth0 mtu 9000")
	f := p.finds(p.doctor(peer...), "path-mtu", doctor.Warning, "packets of 1500 bytes pass to 10.73.0.2, those of MTU 9000 do not", "make it the same on both hosts")
	p.types(f.Command, "ip link set dev veth0 mtu 1500")
	p.sound(p.doctor(peer...), fits)
	endServer(t, s)

	p.types("ip link set dev veth0 mtu 600", "ip link set dev veth0 mtu 600")
	f = p.finds(p.doctor("--ia", "xdp:veth0"), "mtu", doctor.Error, "MTU 600 is too small", "raise it")
	p.types(f.Command, "ip link set dev veth0 mtu 1500")
	p.works()
}

// TestDoctorPort: another program has the port; doctor names this program.
func TestDoctorPort(t *testing.T) {
	p := newPatient(t)
	s := inLab(t, p.l, lab.A, "server", "--ia", "udp:10.73.0.1")
	s.awaitLine(t, `^serving on`)
	pid := s.cmd.Process.Pid
	for _, ia := range []string{"xdp:veth0", "auto:veth0", "udp:10.73.0.1"} {
		f := p.finds(p.doctor("--ia", ia), "port", doctor.Error, fmt.Sprintf(`^UDP port 17473 of 10.73.0.1 is taken by process %d \(.+\)$`, pid), "stop that program, or choose another port with --port")
		if want := fmt.Sprint("kill ", pid); f.Command != want {
			t.Errorf("the command is %q, want %q", f.Command, want)
		}
	}
	p.sound(p.doctor("--ia", "xdp:veth0", "--port", "17474"), fits)
	p.types(fmt.Sprint("kill ", pid), fmt.Sprint("kill ", pid))
	s.wait(t)
	p.sound(p.doctor("--ia", "xdp:veth0"), fits)
	p.works()
}

// TestDoctorProgram: the interface has an XDP program of another owner or of datxdp, or another socket has the queue.
func TestDoctorProgram(t *testing.T) {
	p := newPatient(t)
	var fd int
	if err := p.l.Do(lab.A, func() (err error) { fd, err = takeQueue(lab.Interface); return err }); err != nil {
		t.Fatal(err)
	}
	p.finds(p.doctor("--ia", "xdp:veth0"), "queue-holder", doctor.Error, "^an AF_XDP socket of .* has queue 0 of veth0$", "stop that program")
	if err := syscall.Close(fd); err != nil {
		t.Fatal(err)
	}

	var prog *labtest.Program
	if err := p.l.Do(lab.A, func() (err error) { prog, err = labtest.AttachProgram(lab.Interface, false); return err }); err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	want := fmt.Sprintf(`^a foreign XDP program is on veth0: id \d+, "%s", attached by bpf_link \d+ of process %d \(.+\)$`, labtest.ProgramName, os.Getpid())
	f := p.finds(p.doctor("--ia", "xdp:veth0"), "xdp-program", doctor.Error, want, "take it off, or choose another interface")
	if want := fmt.Sprint("kill ", os.Getpid()); f.Command != want {
		t.Errorf("the command is %q, want %q", f.Command, want)
	}
	r := p.doctor("--ia", "auto:veth0")
	p.finds(r, "xdp-program", doctor.Warning, want, "take it off")
	if !strings.HasPrefix(r.Verdict, "Only UDP will work on veth0, because: a foreign XDP program") {
		t.Errorf("verdict %q", r.Verdict)
	}
	if err := prog.Close(); err != nil {
		t.Fatal(err)
	}
	p.sound(p.doctor("--ia", "xdp:veth0"), fits)

	s := inLab(t, p.l, lab.A, "server", "--ia", "xdp:veth0")
	s.awaitLine(t, `^serving on`)
	f = p.finds(p.doctor("--ia", "xdp:veth0"), "xdp-program", doctor.Error, "^the XDP program of another datxdp adapter is on veth0", "stop the program that has it open")
	p.types(f.Command, fmt.Sprint("kill ", s.cmd.Process.Pid))
	s.wait(t)
	p.works()
}

// TestDoctorPeer: there is no route to the peer, no such host, no adapter on it, or another program on its port.
func TestDoctorPeer(t *testing.T) {
	p := newPatient(t)
	peer := func(host string) *doctor.Report { return p.doctor("--ia", "xdp:veth0", "--peer", host) }

	p.finds(peer("10.73.0.9"), "neighbour", doctor.Error, "^10.73.0.9 does not answer ARP on veth0$", "check the address")

	f := p.finds(peer("192.0.2.7"), "route", doctor.Error, "^no route leads to 192.0.2.7 through veth0$", "add a route")
	p.types(f.Command, "ip route add 192.0.2.7/32 dev veth0")
	p.on(lab.B, "ip address add 192.0.2.7/32 dev veth0")
	p.finds(peer("192.0.2.7"), "reach", doctor.Error, "^192.0.2.7 is up, but no adapter has UDP port 17473 open there$", "start the program there")

	for _, b := range []netip.Addr{lab.B.Addr4(), lab.B.Addr6()} {
		r := peer(b.String())
		f := p.finds(r, "reach", doctor.Error, "is up, but no adapter has UDP port 17473 open there$", "start the program there")
		if want := fmt.Sprintf("%s, but nothing will reach %v", fits, b); !regexp.MustCompile(want).MatchString(r.Verdict) {
			t.Errorf("verdict %q, want %q", r.Verdict, want)
		}
		if b.Is4() {
			p.silent(b)
		}
		s := inLab(t, p.l, lab.B, strings.Fields(strings.Replace(f.Command, "auto:INTERFACE", "auto:veth0", 1))[1:]...)
		s.awaitLine(t, `^serving on`)
		if b.Is4() {
			p.sound(peer(b.String()), fits)
		}
		endServer(t, s)
	}
	p.works()
}

// silent: a program that does not answer has the port at the peer.
func (p patient) silent(b netip.Addr) {
	p.Helper()
	var c *net.UDPConn
	err := p.l.Do(lab.B, func() (err error) {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(b, defaultPort)))
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	defer c.Close()
	f := p.finds(p.doctor("--ia", "xdp:veth0", "--peer", b.String()), "reach", doctor.Error, "is up, but UDP port 17473 does not answer$", "let the port through its firewall")
	if want := "iptables -I INPUT -p udp --dport 17473 -j ACCEPT"; f.Command != want {
		p.Errorf("the command is %q, want %q", f.Command, want)
	}
}

// TestDoctorNoRoot: doctor runs without privilege, then with the capabilities that it recommends.
func TestDoctorNoRoot(t *testing.T) {
	p := newPatient(t)
	if _, err := exec.LookPath("setcap"); err != nil {
		t.Skip("no setcap: apt-get install libcap2-bin")
	}
	exe := copyOfProgram(t)
	asNobody := func(args ...string) (r *running) {
		cmd := exec.Command(exe, args...)
		cmd.Env, cmd.Dir = append(os.Environ(), asProgram), "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if err := p.l.Do(lab.A, func() error { r = startCmd(t, cmd); return nil }); err != nil {
			t.Fatal(err)
		}
		return r
	}
	examine := func(ia string) *doctor.Report { return reportOf(t, asNobody("doctor", "--json", "--ia", ia).wait(t)) }

	f := p.finds(examine("xdp:veth0"), "capabilities", doctor.Error, `^uid 65534 lacks CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF$`, "run as root, or give them to the program")
	if r := examine("auto:veth0"); r.Severity == doctor.Error || !strings.HasPrefix(r.Verdict, "Only UDP will work on veth0, because: uid 65534 lacks") {
		t.Errorf("verdict %q of severity %v", r.Verdict, r.Severity)
	}
	if r := examine("udp:10.73.0.1"); r.Severity == doctor.Error {
		t.Errorf("verdict %q of severity %v", r.Verdict, r.Severity)
	}
	got := asNobody("server", "--ia", "xdp:veth0").wait(t)
	if !strings.Contains(got.stderr, f.Found) || !strings.Contains(got.stderr, f.Command) || got.code != exitUsage {
		t.Errorf("the server does not explain it: exit %d, %s", got.code, got.stderr)
	}

	command, _ := strings.CutPrefix(f.Command, "sudo ")
	p.types(command, "setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock=ep "+exe)
	p.sound(examine("xdp:veth0"), fits)
	s := asNobody("server", "--ia", "xdp:veth0")
	s.awaitLine(t, `^serving on .*mode copy`)
	endServer(t, s)
}

// TestExplain: after an error, the command prints the cause and the remedy, and no other findings.
func TestExplain(t *testing.T) {
	p := newPatient(t)
	tests := []struct {
		name       string
		args       []string
		want, none string
	}{
		{"no server", []string{"run", "10.73.0.2", "--ia", "xdp:veth0"}, "10.73.0.2 is up, but no adapter has UDP port 17473 open there", "veth0 is up"},
		{"no route", []string{"run", "192.0.2.7", "--ia", "xdp:veth0"}, "ip route add 192.0.2.7/32 dev veth0", "carrier"},
		{"no interface", []string{"server", "--ia", "xdp:eth7"}, "choose one of lo, veth0", "root has"},
		{"usage", []string{"server", "--ia", "veth0"}, "", "error "},
		{"flags", []string{"server", "--port", "x"}, "", "error "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := inLab(t, p.l, lab.A, tt.args...).wait(t)
			first, rest, _ := strings.Cut(got.stderr[strings.Index(got.stderr, "datbench: "):], "\n")
			if got.code != exitUsage || !strings.HasPrefix(first, "datbench: ") || !strings.Contains(rest, tt.want) || strings.Contains(rest, tt.none) {
				t.Errorf("exit %d, want %q and no %q in\n%s", got.code, tt.want, tt.none, got.stderr)
			}
		})
	}
}

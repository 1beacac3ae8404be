package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	scripts     = root + "/vagrant"
	scriptLimit = 5 * time.Minute // on an idle host each takes less than one
	nodes       = 2
	memory      = "768M" // of which the system uses 250
)

// network is the booted machines, and runs scripts on this host or on one of them.
type network struct {
	machines []*machine
	config   string // the ssh configuration file
	results  string
}

// TestMachines checks transfers between two hosts with Debian's kernel and virtio_net.
func TestMachines(t *testing.T) {
	system := os.Getenv("DATXDP_VM_ROOT")
	if system == "" {
		t.Skip("boots two machines: make vm")
	}
	n := boot(t, newImage(t, system, kernels(t)[0].dir))
	for _, step := range []struct {
		name string
		run  func(*testing.T, *network)
	}{{"provision", provision}, {"again", again}, {"verifier", verifier}, {"memory limit", memoryLimit}, {"udp", groups}, {"test.sh", runTest}, {"bench.sh", runBench}, {"provider", providerTests}, {"memory", memoryWaiter}} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, n) }) {
			return
		}
	}
}

func boot(t *testing.T, img image) *network {
	t.Helper()
	dir, results := t.TempDir(), keep(t)
	n := &network{config: filepath.Join(dir, "ssh_config"), results: results}
	begin := time.Now()
	for node := 1; node <= nodes; node++ {
		n.machines = append(n.machines, start(t, node, "qemu-system-x86_64", onBridge(node, img)...))
	}
	if err := os.WriteFile(n.config, []byte(sshConfig(img.key, dir, n.machines)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range n.machines {
		m.await(t)
	}
	t.Logf("%d machines are up after %.0f s", nodes, time.Since(begin).Seconds())
	return n
}

// onBridge returns qemu's arguments for a machine with an interface on the bridge between the machines.
func onBridge(node int, img image) []string {
	m := machine{node: node}
	return append(arguments(node, img, memory, "address="+m.address()),
		"-netdev", fmt.Sprintf("tap,id=nodes,ifname=%s,script=no,downscript=no,vhost=off,queues=%s", m.name(), os.Getenv("DATXDP_VM_QUEUES")),
		"-device", fmt.Sprintf("virtio-net-pci,netdev=nodes,mq=on,mac=52:54:00:00:57:%02x,romfile=", node))
}

// keep creates an empty directory bin/vm/results, which stays after the test.
func keep(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(root + "/bin/vm/results")
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// provision does the same as vagrant up.
func provision(t *testing.T, n *network) {
	n.onEach(func(m *machine) { n.ssh(t, m, root+"/bin/datbench", "cat >/tmp/datbench") })
	again(t, n)
}

// again does the same as vagrant provision, which may run at any time.
func again(t *testing.T, n *network) {
	n.onEach(func(m *machine) {
		out := n.ssh(t, m, scripts+"/provision.sh", "bash -s -- "+m.address()+" 2 1500")
		for _, want := range []string{"eth1: 3 of 4 queues", "eth1: " + m.address() + ", MTU 1500, virtio_net, Linux 6.1."} {
			if !strings.Contains(out, want) {
				t.Errorf("provision.sh on %s says\n%swant %q", m.name(), out, want)
			}
		}
	})
}

// onEach does something on all machines at the same time.
func (n *network) onEach(do func(*machine)) {
	var all sync.WaitGroup
	for _, m := range n.machines {
		all.Go(func() { do(m) })
	}
	all.Wait()
}

// verifier loads the steering program on this kernel, whose verifier may differ from others.
func verifier(t *testing.T, n *network) {
	n.ssh(t, n.machines[0], root+"/bin/vm/bpf.test", "cat >/run/bpf.test && chmod +x /run/bpf.test")
	out := n.ssh(t, n.machines[0], os.DevNull, "/run/bpf.test -test.v -test.run 'Privilege' -test.timeout 2m")
	if !strings.Contains(out, "--- PASS: TestVerifierPrivilege") {
		t.Errorf("the tests of bpf did not run:\n%s", out)
	}
}

// runTest transfers little data, because the processors are emulated and may share the host's.
func runTest(t *testing.T, n *network) {
	if err := n.script(t, "test.sh", "--bytes", "256KiB", "--size", "16KiB"); err != nil {
		t.Error(err)
	}
	for name, mode := range map[string]string{
		"test-node2-xdp-node1-xdp.json": "copy",
		"test-node2-udp-node1-udp.json": "udp",
		"test-node2-udp-node1-xdp.json": "udp",
	} {
		for _, row := range n.check(t, name, mode, 3) {
			if !row.Valid {
				t.Errorf("%s: %+v", name, row)
			}
		}
	}
}

// busy matches reasons that only mean that the host gave the machine too little time.
var busy = regexp.MustCompile(`^(\d+ samples are too few for a p99\.9|not saturated: .*|measured for \S+ of \S+)$`)

// excused reports whether a row is valid, or invalid only for such reasons.
func (r result) excused() bool {
	for reason := range strings.SplitSeq(r.Reason, "; ") {
		if !r.Valid && !busy.MatchString(reason) {
			return false
		}
	}
	return true
}

func runBench(t *testing.T, n *network) {
	if err := n.script(t, "bench.sh", "--op", "send,read", "--metric", "lat,bw", "--size", "1KiB", "--duration", "1s"); err != nil {
		t.Log(err, "(some row is not valid)")
	}
	for name, mode := range map[string]string{
		"bench-node2-node1-xdp.json": "copy",
		"bench-node2-node1-udp.json": "udp",
	} {
		for _, row := range n.check(t, name, mode, 4) {
			if !row.excused() {
				t.Errorf("%s: %+v", name, row)
			}
		}
	}
	for _, m := range n.machines {
		n.checkLog(t, "dmesg-"+m.name()+".txt")
	}
}

// ssh runs a command on a machine with a file as its standard input. Any goroutine may call it.
func (n *network) ssh(t *testing.T, m *machine, stdin, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptLimit)
	defer cancel()
	in, err := os.Open(stdin)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer in.Close()
	cmd := exec.CommandContext(ctx, "ssh", "-F", n.config, m.name(), command)
	cmd.Stdin, cmd.WaitDelay = in, time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s on %s: %v\n%s", command, m.name(), err, out)
	}
	return string(out)
}

// script runs one of the scripts of vagrant/ on this host, as after vagrant up.
func (n *network) script(t *testing.T, name string, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(scripts, name), args...)
	cmd.Env = append(os.Environ(), "DATXDP_SSH_CONFIG="+n.config, "DATXDP_RESULTS="+n.results)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = os.Stdout, os.Stderr, time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// report has the fields of datbench's JSON that the test uses.
type report struct {
	Env     struct{ Kernel string }
	Results []result
}

type result struct {
	Op, Metric, Mode, Reason string
	Samples                  int64
	Valid                    bool
}

// check checks a result file from a machine: its kernel, the mode that must be granted, and the number of rows. Each
// row must have measured something.
func (n *network) check(t *testing.T, name, mode string, rows int) []result {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(n.results, name))
	if err != nil {
		t.Error(err)
		return nil
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if !strings.HasPrefix(r.Env.Kernel, "6.1.") || len(r.Results) != rows {
		t.Errorf("%s: Linux %q, %d rows; want 6.1 and %d", name, r.Env.Kernel, len(r.Results), rows)
	}
	for _, row := range r.Results {
		if row.Mode != mode || row.Samples == 0 {
			t.Errorf("%s: %+v, want mode %s and samples", name, row, mode)
		}
	}
	t.Logf("%s: Linux %s, mode %s, %d rows", name, r.Env.Kernel, mode, len(r.Results))
	return r.Results
}

var trouble = regexp.MustCompile(`(?m)^.*(BUG:|WARNING:|Oops|Call Trace|hung task).*$`)

// checkLog checks that a machine's kernel log has no complaint.
func (n *network) checkLog(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(n.results, name))
	switch {
	case err != nil:
		t.Error(err)
	case !strings.Contains(string(data), "Linux version 6.1."):
		t.Errorf("%s is no kernel log", name)
	case trouble.Match(data):
		t.Errorf("%s: the kernel complains: %s", name, trouble.Find(data))
	}
}

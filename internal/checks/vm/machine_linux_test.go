package vm

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	bootLimit  = 5 * time.Minute // it takes 15 s on an idle host
	processors = 2
)

// kernelOptions make a panic end qemu. The clock is the TSC, because reading a device's clock would exit to qemu.
const kernelOptions = "console=ttyS0 panic=-1 mitigations=off tsc=reliable clocksource=tsc"

// image is the kernel and the system that machines boot.
type image struct {
	kernel, initrd, key string
}

// newImage combines a system of tools/vm-root.sh and a kernel of tools/vm-kernel.sh.
func newImage(t *testing.T, system, kernel string) image {
	t.Helper()
	initrd := filepath.Join(t.TempDir(), "initrd")
	out, err := os.Create(initrd)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	// The kernel unpacks the archives one after the other.
	for _, part := range []string{system + "/root.cpio", kernel + "/modules.cpio"} {
		in, err := os.Open(part)
		if err == nil {
			_, err = io.Copy(out, in)
		}
		if err != nil {
			t.Fatal(err)
		}
		in.Close()
	}
	return image{kernel + "/vmlinuz", initrd, system + "/id"}
}

// fetched is an output line of tools/vm-kernel.sh.
type fetched struct {
	suite, dir string // dir is empty if the kernel is not available
	why        string
}

// release returns the release that uname -r will print.
func (f fetched) release(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, "release"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// kernels parses the output of tools/vm-kernel.sh.
func kernels(t *testing.T) (all []fetched) {
	t.Helper()
	data, err := os.ReadFile(os.Getenv("DATXDP_VM_KERNELS"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		suite, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if why, missing := strings.CutPrefix(dir, "- "); missing {
			all = append(all, fetched{suite: suite, why: why})
			continue
		}
		all = append(all, fetched{suite: suite, dir: dir})
	}
	return all
}

// machine is one emulated host. Its first interface is only for ssh from this host; the others belong to the test.
type machine struct {
	node int
	cmd  *exec.Cmd
	log  console
	// ended is closed when qemu has ended.
	ended chan struct{}
}

// address returns the address according to topology.md.
func (m *machine) address() string { return fmt.Sprintf("192.168.57.%d", 10+m.node) }

// name returns the name of the machine, which its ssh configuration and its tap device have too.
func (m *machine) name() string { return fmt.Sprintf("node%d", m.node) }

// port returns the port of the machine's sshd, in the network namespace of the test.
func (m *machine) port() int { return 2200 + m.node }

// start starts qemu until the end of the test. If the test fails, it prints the console.
func start(t *testing.T, node int, qemu string, args ...string) *machine {
	t.Helper()
	m := &machine{node: node, ended: make(chan struct{}), log: console{up: make(chan struct{})}}
	m.cmd = exec.Command(qemu, args...)
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = m.cmd.Wait() // the console shows how it ended
		close(m.ended)
	}()
	t.Cleanup(func() {
		_ = m.cmd.Process.Kill() // fails if it has ended
		<-m.ended
		if t.Failed() {
			t.Logf("console of %s:\n%s", m.name(), m.log.tail())
		}
	})
	return m
}

// arguments returns qemu's arguments for a machine with only the first interface. The guest kernel gets options in
// addition to kernelOptions.
func arguments(node int, img image, memory, options string) []string {
	m := machine{node: node}
	return []string{
		"-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max", "-smp", fmt.Sprint(processors), "-m", memory,
		"-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", img.kernel, "-initrd", img.initrd,
		"-append", fmt.Sprintf(kernelOptions+" node=%d %s", node, options),
		"-netdev", "user,id=control,restrict=on,hostfwd=tcp:" + net.JoinHostPort("127.0.0.1", fmt.Sprint(m.port())) + "-:22",
		"-device", "virtio-net-pci,netdev=control,romfile=",
	}
}

// await waits until the machine accepts ssh.
func (m *machine) await(t *testing.T) {
	t.Helper()
	select {
	case <-m.log.up:
	case <-m.ended:
		t.Fatalf("%s: qemu ended", m.name())
	case <-time.After(bootLimit):
		t.Fatalf("%s is not up after %v", m.name(), bootLimit)
	}
}

// sshConfig returns a configuration like the output of vagrant ssh-config.
func sshConfig(key, dir string, machines []*machine) string {
	var b strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&b, "Host %s\n  HostName 127.0.0.1\n  Port %d\n", m.name(), m.port())
	}
	// All commands to a machine share one connection, because the key exchange takes an emulated processor a second.
	fmt.Fprintf(&b, "Host *\n  User root\n  IdentityFile %s\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"+
		"  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  ConnectTimeout 30\n"+
		"  ControlMaster auto\n  ControlPersist yes\n  ControlPath %s/%%n\n", key, dir)
	return b.String()
}

// console records a machine's output. Several goroutines use it.
type console struct {
	lock sync.Mutex
	text []byte
	// up is closed when sshd reports that it listens.
	up   chan struct{}
	seen bool
}

func (c *console) Write(p []byte) (int, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.text = append(c.text, p...)
	if !c.seen && bytes.Contains(c.text, []byte("Server listening on 0.0.0.0 ")) {
		c.seen = true
		close(c.up)
	}
	return len(p), nil
}

// tail returns the last 8 KiB of the output.
func (c *console) tail() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return string(c.text[max(0, len(c.text)-8<<10):])
}

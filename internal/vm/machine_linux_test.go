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
	bootLimit  = 5 * time.Minute // 15 s on an idle host
	processors = 2
)

// kernelOptions: a panic ends qemu; the clock is the processor's, for a device's is a call of qemu.
const kernelOptions = "console=ttyS0 panic=-1 mitigations=off tsc=reliable clocksource=tsc"

// image is what machines boot.
type image struct {
	kernel, initrd, key string
}

// newImage makes the image of a system and a kernel as tools/vm-root.sh and vm-kernel.sh leave them.
func newImage(t *testing.T, system, kernel string) image {
	t.Helper()
	initrd := filepath.Join(t.TempDir(), "initrd")
	out, err := os.Create(initrd)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	// The kernel unpacks one archive after the other.
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

// fetched is a line of what tools/vm-kernel.sh prints.
type fetched struct {
	suite, dir string // dir is empty if the kernel is not to be had
	why        string
}

// release is what uname -r will say.
func (f fetched) release(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, "release"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// kernels reads what tools/vm-kernel.sh has printed.
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

// machine is one emulated host: its first interface is for ssh from here alone, the others are the test's.
type machine struct {
	node int
	cmd  *exec.Cmd
	log  console
	// ended is closed when qemu has ended.
	ended chan struct{}
}

// address is that of topology.md.
func (m *machine) address() string { return fmt.Sprintf("192.168.57.%d", 10+m.node) }

// name is that of the machine, of its ssh configuration and of its tap device.
func (m *machine) name() string { return fmt.Sprintf("node%d", m.node) }

// port is where its sshd is reached, in a network namespace that is the test's own.
func (m *machine) port() int { return 2200 + m.node }

// start starts qemu, which ends with the test, and shows the console if the test has failed.
func start(t *testing.T, node int, qemu string, args ...string) *machine {
	t.Helper()
	m := &machine{node: node, ended: make(chan struct{}), log: console{up: make(chan struct{})}}
	m.cmd = exec.Command(qemu, args...)
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = m.cmd.Wait() // how it ended is on the console
		close(m.ended)
	}()
	t.Cleanup(func() {
		_ = m.cmd.Process.Kill() // it may have ended
		<-m.ended
		if t.Failed() {
			t.Logf("console of %s:\n%s", m.name(), m.log.tail())
		}
	})
	return m
}

// arguments are those of qemu for a machine with nothing but its first interface. append goes to the kernel.
func arguments(node int, img image, memory, append string) []string {
	m := machine{node: node}
	return []string{
		"-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max", "-smp", fmt.Sprint(processors), "-m", memory,
		"-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", img.kernel, "-initrd", img.initrd,
		"-append", fmt.Sprintf(kernelOptions+" node=%d %s", node, append),
		"-netdev", "user,id=control,restrict=on,hostfwd=tcp:" + net.JoinHostPort("127.0.0.1", fmt.Sprint(m.port())) + "-:22",
		"-device", "virtio-net-pci,netdev=control,romfile=",
	}
}

// await waits until the machine takes ssh.
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

// sshConfig is what vagrant ssh-config would print.
func sshConfig(key, dir string, machines []*machine) string {
	var b strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&b, "Host %s\n  HostName 127.0.0.1\n  Port %d\n", m.name(), m.port())
	}
	// One connection to a machine serves all commands: an emulated processor needs a second for its keys.
	fmt.Fprintf(&b, "Host *\n  User root\n  IdentityFile %s\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"+
		"  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  ConnectTimeout 30\n"+
		"  ControlMaster auto\n  ControlPersist yes\n  ControlPath %s/%%n\n", key, dir)
	return b.String()
}

// console is what a machine has printed. It is written and read by different goroutines.
type console struct {
	lock sync.Mutex
	text []byte
	// up is closed when sshd says that it listens.
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

// tail is its last 8 KiB.
func (c *console) tail() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return string(c.text[max(0, len(c.text)-8<<10):])
}

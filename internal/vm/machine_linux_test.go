package vm

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	bootLimit  = 2 * time.Minute // 15 s on an idle host
	processors = 2
	memory     = "768M" // the system in memory takes 250
)

// kernelOptions: a panic ends qemu; the clock is the processor's, for a device's is a call of qemu.
const kernelOptions = "console=ttyS0 panic=-1 mitigations=off tsc=reliable clocksource=tsc"

// machine is one emulated host: its first interface is for ssh from here alone, its second is on the
// bridge between the machines.
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
func start(t *testing.T, node int, image, queues string) *machine {
	t.Helper()
	m := &machine{node: node, ended: make(chan struct{}), log: console{up: make(chan struct{})}}
	m.cmd = exec.Command("qemu-system-x86_64", m.arguments(image, queues)...)
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

func (m *machine) arguments(image, queues string) []string {
	return []string{
		"-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max", "-smp", fmt.Sprint(processors), "-m", memory,
		"-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", filepath.Join(image, "vmlinuz"), "-initrd", filepath.Join(image, "initrd"),
		"-append", fmt.Sprintf(kernelOptions+" node=%d address=%s", m.node, m.address()),
		"-netdev", "user,id=control,restrict=on,hostfwd=tcp:" + net.JoinHostPort("127.0.0.1", fmt.Sprint(m.port())) + "-:22",
		"-device", "virtio-net-pci,netdev=control,romfile=",
		"-netdev", fmt.Sprintf("tap,id=nodes,ifname=%s,script=no,downscript=no,vhost=off,queues=%s", m.name(), queues),
		"-device", fmt.Sprintf("virtio-net-pci,netdev=nodes,mq=on,mac=52:54:00:00:57:%02x,romfile=", m.node),
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
func sshConfig(image, dir string, machines []*machine) string {
	var b strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&b, "Host %s\n  HostName 127.0.0.1\n  Port %d\n", m.name(), m.port())
	}
	// One connection to a machine serves all commands: an emulated processor needs a second for its keys.
	fmt.Fprintf(&b, "Host *\n  User root\n  IdentityFile %s/id\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"+
		"  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  ConnectTimeout 30\n"+
		"  ControlMaster auto\n  ControlPersist yes\n  ControlPath %s/%%n\n", image, dir)
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

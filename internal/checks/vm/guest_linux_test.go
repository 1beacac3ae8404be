package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// guest is the machine with the NICs, with one kernel.
type guest struct {
	*machine
	kernel  string // output of uname -r
	config  string // the ssh configuration file
	monitor *monitor
}

// caseLimit limits one command in the guest.
const caseLimit = 4 * time.Minute

// builtIn makes virtio_net work as if it was built into the kernel. As a module of Linux 7.3 it gives the device a wrong
// address in zero-copy mode (driver.StrayHeader). With these options all such addresses are of memory that nobody uses,
// which is zero, as the right header is. modules hidden of nics-guest.sh then lets it look built in.
const builtIn = "nokaslr memmap=64M$0x40000000"

// bootNICs starts a machine with all pairs of NICs and sets it up.
func bootNICs(t *testing.T, k fetched) *guest {
	t.Helper()
	dir := t.TempDir()
	img := newImage(t, os.Getenv("DATXDP_VM_ROOT"), k.dir)
	g := &guest{config: filepath.Join(dir, "ssh_config"), kernel: k.release(t)}
	qemu := os.Getenv("DATXDP_VM_QEMU")
	args := append(arguments(1, img, nicMemory, builtIn), "-qmp", "unix:"+monitorSocket(dir)+",server=on,wait=off")
	for i, n := range nics {
		n.join(t)
		args = append(args, n.arguments(i+1)...)
	}
	g.machine = start(t, 1, qemu, append(args, firmware(qemu)...)...)
	if err := os.WriteFile(g.config, []byte(sshConfig(img.key, dir, []*machine{g.machine})), 0o600); err != nil {
		t.Fatal(err)
	}
	g.await(t)
	g.monitor = openMonitor(t, dir)
	g.copy(t, datbench(), "/usr/local/bin/datbench")
	g.copy(t, root+"/tools/nics-guest.sh", "/run/nics")
	names := make([]string, len(nics))
	for i, n := range nics {
		names[i] = n.name
	}
	if out, err := g.do(t, "setup", names...); err != nil {
		t.Fatalf("setup: %v\n%s", err, out)
	}
	return g
}

// datbench returns the program to test: the one just built, or another one if DATXDP_VM_DATBENCH names it.
func datbench() string {
	if other := os.Getenv("DATXDP_VM_DATBENCH"); other != "" {
		return other
	}
	return root + "/bin/vm/datbench"
}

// firmware returns the firmware directories for a qemu that is not installed.
func firmware(qemu string) []string {
	share := filepath.Join(filepath.Dir(qemu), "../share/qemu")
	if strings.HasPrefix(qemu, "/usr/bin/") {
		return nil
	}
	return []string{"-L", share, "-L", "/usr/share/seabios"}
}

// copy copies a program to the guest.
func (g *guest) copy(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if out, err := g.ssh(t, in, fmt.Sprintf("cat >%s && chmod 755 %[1]s", to)); err != nil {
		t.Fatalf("%s: %v\n%s", to, err, out)
	}
}

// do runs a command of nics-guest.sh.
func (g *guest) do(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	return g.ssh(t, nil, "/run/nics "+command+" "+strings.Join(args, " "))
}

// ssh runs a command in the guest. The error is the exit status or a timeout.
func (g *guest) ssh(t *testing.T, stdin *os.File, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), caseLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ssh", "-F", g.config, g.name(), command)
	cmd.WaitDelay = time.Second
	if stdin != nil {
		cmd.Stdin = stdin
	}
	out, err := cmd.CombinedOutput()
	select {
	case <-g.ended:
		t.Fatalf("%s: qemu ended\n%s", command, out)
	default:
	}
	return string(out), err
}

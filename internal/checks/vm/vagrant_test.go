package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVagrantfile validates the Vagrantfile with Vagrant, without a provider and without a network.
func TestVagrantfile(t *testing.T) {
	if _, err := exec.LookPath("vagrant"); err != nil {
		t.Skip("no vagrant: make deps installs it as root")
	}
	// The Vagrantfile names the program, which may not exist.
	dir := t.TempDir()
	copyTo(t, dir, "vagrant/Vagrantfile", "vagrant/provision.sh")
	write(t, filepath.Join(dir, "bin/datbench"), nil)
	cmd := exec.CommandContext(t.Context(), "vagrant", "validate", "--ignore-provider")
	cmd.Dir = filepath.Join(dir, "vagrant")
	cmd.Env = append(os.Environ(), "VAGRANT_HOME="+filepath.Join(dir, "home"), "VAGRANT_CHECKPOINT_DISABLE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("vagrant validate: %v\n%s", err, out)
	}
}

// TestAddresses: every place that derives a node's address from its number uses the same network.
func TestAddresses(t *testing.T) {
	const want = "192.168.57"
	for file, pattern := range map[string]string{
		"Vagrantfile": `(?s)NETWORK = "([\d.]+)".*#\{NETWORK\}\.#\{10 \+ node\}`,
		"nodes.sh":    `(?s)NETWORK=([\d.]+).*\$NETWORK\.\$\(\(10 \+ \$1\)\)`,
		"topology.md": `([\d.]+)\.\(10 \+ node\)`,
	} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(string(read(t, "vagrant/"+file)))
		if m == nil || m[1] != want {
			t.Errorf("%s derives addresses as %q, want 10 + node in %s", file, m, want)
		}
	}
}

// TestSkipped: without nodes the scripts print this and exit with a special status.
func TestSkipped(t *testing.T) {
	for _, name := range []string{"test.sh", "bench.sh"} {
		cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "vagrant", name))
		cmd.Env = append(os.Environ(), "DATXDP_SSH_CONFIG=/dev/null")
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 77 || !strings.HasPrefix(string(out), name+": skipped: ") {
			t.Errorf("%s without nodes: exit status %d, %q; want 77 and the reason", name, code, out)
		}
	}
}

const root = "../../.."

func copyTo(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, file := range files {
		write(t, filepath.Join(dir, file), read(t, file))
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

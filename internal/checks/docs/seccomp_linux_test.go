package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// profile is a seccomp profile in the format of container engines. It has the fields that docs/seccomp.json uses.
type profile struct {
	DefaultAction   string
	DefaultErrnoRet uint32
	Architectures   []string
	Syscalls        []struct {
		Comment string
		Names   []string
		Action  string
		Args    []struct {
			Index, Value uint32
			Op           string
		}
	}
}

func readProfile(name string) (*profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, d := new(profile), json.NewDecoder(f)
	d.DisallowUnknownFields()
	return p, d.Decode(p)
}

// filterVar is the variable that names a seccomp profile. If it is set, the test binary installs the filter of the
// profile and then executes its arguments as a program.
const filterVar = "DATXDP_TEST_SECCOMP"

func init() {
	if name := os.Getenv(filterVar); name != "" {
		fmt.Fprintln(os.Stderr, confine(name, os.Getenv(filterVar+"_NUMBERS"), os.Args[1:]))
		os.Exit(3)
	}
}

// confine installs the filter and executes the program. It returns only on an error. System calls: prctl(2), execve(2).
func confine(name, numbers string, argv []string) error {
	p, err := readProfile(name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(numbers)
	if err != nil {
		return err
	}
	program, err := p.compile(systemCalls(string(text)))
	if err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	const noNewPrivs, setSeccomp, modeFilter = 38, 22, 2
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, noNewPrivs, 1, 0); e != 0 {
		return fmt.Errorf("no_new_privs: %w", e)
	}
	prog := syscall.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, setSeccomp, modeFilter, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return syscall.Exec(path, argv, os.Environ())
}

// systemCalls returns the numbers of system calls in a file of golang.org/x/sys.
func systemCalls(text string) map[string]uint32 {
	all := map[string]uint32{}
	for _, m := range regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+= (\d+)`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[2])
		all[strings.ToLower(m[1])] = uint32(n)
	}
	return all
}

// compile returns the filter for this architecture. Like container engines, it skips names that it does not know.
func (p *profile) compile(numbers map[string]uint32) ([]syscall.SockFilter, error) {
	const (
		load, equal, ret        = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, syscall.BPF_RET | syscall.BPF_K
		number, args            = 0, 16 // offsets in struct seccomp_data
		allow, refuse    uint32 = 0x7fff0000, 0x00050000
	)
	if p.DefaultAction != "SCMP_ACT_ERRNO" || len(numbers) < 300 {
		return nil, errors.New("the default has to be an error, and system calls numbered")
	}
	f := []syscall.SockFilter{{Code: load, K: number}}
	for _, rule := range p.Syscalls {
		if rule.Action != "SCMP_ACT_ALLOW" || len(rule.Args) > 1 {
			return nil, fmt.Errorf("rule %+v is of another form", rule)
		}
		for _, name := range rule.Names {
			n, known := numbers[name]
			switch {
			case !known:
			case len(rule.Args) == 0:
				f = append(f, syscall.SockFilter{Code: equal, Jf: 1, K: n}, syscall.SockFilter{Code: ret, K: allow})
			default:
				a := rule.Args[0]
				f = append(f, syscall.SockFilter{Code: equal, Jf: 4, K: n}, syscall.SockFilter{Code: load, K: args + 8*a.Index},
					syscall.SockFilter{Code: equal, Jf: 1, K: a.Value}, syscall.SockFilter{Code: ret, K: allow},
					syscall.SockFilter{Code: load, K: number})
			}
		}
	}
	return append(f, syscall.SockFilter{Code: ret, K: refuse | p.DefaultErrnoRet}), nil
}

// TestSeccompProfile checks that docs/seccomp.json has the format of container engines and names each system call once.
// The calls must exist and include those that Podman's profile lacks according to the page.
func TestSeccompProfile(t *testing.T) {
	p, err := readProfile(filepath.Join(root, "docs/seccomp.json"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(numbersFile(t))
	if err != nil {
		t.Fatal(err)
	}
	numbers := systemCalls(string(text))
	var all []string
	for _, rule := range p.Syscalls {
		for _, name := range rule.Names {
			if _, known := numbers[name]; !known && runtime.GOARCH == "amd64" {
				t.Errorf("there is no system call %s", name)
			}
			if len(rule.Args) == 0 {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	if once := slices.Compact(slices.Clone(all)); len(once) != len(all) {
		t.Errorf("%d names, %d of them once", len(all), len(once))
	}
	for _, name := range []string{"bpf", "execve", "futex", "mmap"} {
		if !slices.Contains(all, name) {
			t.Errorf("%s is not allowed", name)
		}
	}
	for _, name := range []string{"mount", "ptrace", "setns", "unshare", "init_module", "socket", "perf_event_open"} {
		if slices.Contains(all, name) {
			t.Errorf("%s is allowed, which no program of ours needs", name)
		}
	}
	if _, err := p.compile(numbers); err != nil {
		t.Error(err)
	}
}

// numbersFile returns the file of golang.org/x/sys with the numbers of system calls.
func numbersFile(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "unix", "zsysnum_linux_"+runtime.GOARCH+".go")
}

// TestSeccomp runs a server and a client over AF_XDP with the filter of docs/seccomp.json and the capabilities of the
// pod. Without the rule for bpf(2), or for AF_XDP sockets, the server must fail to open.
func TestSeccomp(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	labtest.RequireXDP(t)
	w := newWorld(t)
	w.buildDatbench(t)
	l := hosts(t)
	whole := filepath.Join(root, "docs/seccomp.json")
	server, client := step{commands: "./bin/datbench server --ia xdp:eth0"},
		step{commands: "./bin/datbench run 10.0.0.1 --ia xdp:eth0 --op write --metric lat --duration 50ms", other: true}
	for _, name := range []string{"bpf", "socket"} {
		var all labtest.Output
		r := w.start(t, l, server, plan{kind: "lab", under: under(t, without(t, whole, name))}, &all)
		if err := r.wait(); err == nil || !strings.Contains(all.String(), "CAP_") && !strings.Contains(all.String(), "not permitted") {
			t.Errorf("without %s: %v\n%s", name, err, &all)
		}
	}
	var all labtest.Output
	p := plan{kind: "lab", under: under(t, whole), add: make([]addition, 1)} // a short measurement on a busy host may be invalid
	s := w.start(t, l, server, p, &all)
	s.awaitWord(t)
	if !printed(all.String(), "serving on 10.0.0.1…") {
		t.Fatalf("got %s", &all)
	}
	if err := w.start(t, l, client, p, &all).wait(); err != nil && !p.tolerates(err, all.String()) {
		t.Errorf("%v\n%s", err, &all)
	}
	s.stop(t)
}

// under returns a command that runs a program with a profile and the capabilities of a pod.
func under(t *testing.T, profile string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if profile, err = filepath.Abs(profile); err != nil {
		t.Fatal(err)
	}
	caps := "-all,+net_admin,+net_raw,+bpf,+ipc_lock"
	return []string{"setpriv", "--inh-caps=-all", "--bounding-set=" + caps, "env", filterVar + "=" + profile,
		filterVar + "_NUMBERS=" + numbersFile(t), self}
}

// without returns a copy of a profile without one system call. If the call is socket, only the rule for AF_XDP is
// removed.
func without(t *testing.T, name, call string) string {
	t.Helper()
	p, err := readProfile(name)
	if err != nil {
		t.Fatal(err)
	}
	const afXDP = 44
	for i := range p.Syscalls {
		r := &p.Syscalls[i]
		if len(r.Args) == 0 || r.Args[0].Value == afXDP {
			r.Names = slices.DeleteFunc(r.Names, func(n string) bool { return n == call })
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "seccomp.json")
	if err := os.WriteFile(copied, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return copied
}

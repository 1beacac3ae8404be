package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/datxdp/datxdp/internal/doctor"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// afXDP is AF_XDP of linux/socket.h.
const afXDP = 44

// chosenInterfaces returns all interfaces except loopback.
func chosenInterfaces([]string) (chosen []net.Interface, err error) {
	all, err := net.Interfaces()
	for _, ifi := range all {
		if ifi.Flags&net.FlagLoopback == 0 {
			chosen = append(chosen, ifi)
		}
	}
	return chosen, err
}

// attachedXDP returns the ID and the mode of the XDP program on an interface; ID 0 if there is none.
func attachedXDP(index int) (id uint32, mode string, err error) {
	ifi, err := net.InterfaceByIndex(index)
	if err != nil {
		return 0, "", err
	}
	id, err = labtest.ProgramOn(ifi.Name)
	return id, "", err
}

// patient is a lab with a fault for the doctor to find.
type patient struct {
	*testing.T
	l *lab.Lab
}

func newPatient(t *testing.T) patient {
	t.Parallel() // each test has its own lab
	labtest.RequireXDP(t)
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no ip: apt-get install iproute2; the commands of the doctor are run with it")
	}
	return patient{t, labtest.New(t, lab.Options{})}
}

// doctor runs datbench doctor on side A. The exit status must agree with the report.
func (p patient) doctor(args ...string) *doctor.Report {
	p.Helper()
	return reportOf(p.T, inLab(p.T, p.l, lab.A, append([]string{"doctor", "--json"}, args...)...).wait(p.T))
}

func reportOf(t *testing.T, got outcome) *doctor.Report {
	t.Helper()
	r := &doctor.Report{}
	d := json.NewDecoder(strings.NewReader(got.stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		t.Fatalf("%v in %q; %s", err, got.stdout, got.stderr)
	}
	if want := map[bool]int{true: exitInvalid, false: exitValid}[r.Severity == doctor.Error]; got.code != want {
		t.Errorf("exit status %d with severity %v: want %d", got.code, r.Severity, want)
	}
	return r
}

// finds returns the finding of a check; there must be exactly one.
func (p patient) finds(r *doctor.Report, check string, s doctor.Severity, found, fix string) doctor.Finding {
	p.Helper()
	for _, f := range r.Findings {
		if f.Check != check || f.Severity != s {
			continue
		}
		if !regexp.MustCompile(found).MatchString(f.Found) || !strings.Contains(f.Fix, fix) {
			p.Errorf("%s found %q, fix %q\nwant %q, fix %q", check, f.Found, f.Fix, found, fix)
		}
		return f
	}
	p.Fatalf("%s has no finding of severity %v in\n%+v", check, s, r.Findings)
	return doctor.Finding{}
}

// sound requires this verdict and no warnings, except warnings about the host that runs the test.
func (p patient) sound(r *doctor.Report, verdict string) {
	p.Helper()
	if !regexp.MustCompile(verdict).MatchString(r.Verdict) {
		p.Errorf("verdict %q, want %q", r.Verdict, verdict)
	}
	for _, f := range r.Findings {
		if f.Severity > doctor.Info && f.Group != "host" {
			p.Errorf("got %+v, want no warning", f)
		}
	}
}

// types runs a command that the doctor recommended, on side A.
func (p patient) types(command, want string) {
	p.Helper()
	if command != want {
		p.Errorf("the command is %q, want %q", command, want)
	}
	err := p.l.Do(lab.A, func() error {
		out, err := exec.Command("sh", "-c", command).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
}

// works checks that datbench can measure over AF_XDP from side A to a server on side B.
func (p patient) works() {
	p.Helper()
	s := inLab(p.T, p.l, lab.B, "server", "--ia", "xdp:veth0")
	s.awaitLine(p.T, `^serving on`)
	got := inLab(p.T, p.l, lab.A, "run", lab.B.Addr4().String(), "--ia", "xdp:veth0", "--duration", "20ms", "--warmup", "1ms").wait(p.T)
	if got.code == exitUsage {
		p.Errorf("datbench does not work: %s", got.stderr)
	}
	endServer(p.T, s)
}

// endServer interrupts a server and waits for its end.
func endServer(t *testing.T, s *running) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.wait(t)
}

// copyOfProgram copies this program to a directory where every user may run it.
func copyOfProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "datbench")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func (p patient) on(s lab.Side, command string) {
	p.Helper()
	if err := p.l.Do(s, func() error { return exec.Command("sh", "-c", command).Run() }); err != nil {
		p.Fatalf("%s: %v", command, err)
	}
}

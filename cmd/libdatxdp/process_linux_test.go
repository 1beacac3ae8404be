//go:build datprovider

package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// providerVar is the environment variable with the path of the library to test. If it is not set, these tests are
// skipped; they do not build the library, because that needs cgo and the headers of libdat2.
const providerVar = "DATXDP_PROVIDER"

// limit is the time limit of one program. On an idle host each program needs less than a tenth of it. A busy host needs
// more: if a program polls memory in a loop, the thread that changes this memory may have to wait for a CPU.
const limit = 3 * time.Minute

// ia is the name in dat.conf of the adapter that a test uses.
const ia = "ia"

// Other adapters in dat.conf. Several processes may open shared over UDP, because it names no port. beside is over UDP on
// the address of the interface, whatever the link of ia is.
const (
	shared = "shared"
	beside = "beside"
)

// hosts has two network namespaces with a link between them, and a dat.conf for each.
type hosts struct {
	t    *testing.T
	lab  *lab.Lab
	conf [2]string
	// plain means that the link is plainUDP.
	plain bool
	// security has the options of dat.conf for secure mode; in plaintext mode they are empty.
	security [2]string
}

// requireProvider returns the path of the library to test. It skips the test if providerVar is not set or if namespaces
// are unavailable.
func requireProvider(t *testing.T) string {
	t.Helper()
	library := os.Getenv(providerVar)
	if library == "" {
		t.Skip(providerVar + " names no library: make provider-test builds one")
	}
	labtest.RequireXDP(t)
	return library
}

// overEach runs a test over AF_XDP and over UDP.
func overEach(t *testing.T, test func(*hosts)) { over(t, []string{"xdp", "udp"}, test) }

// plainUDP is UDP without offloads, neither of the link nor of the interfaces.
const plainUDP = "udp without offload"

// over runs a test over the given links: xdp, udp and plainUDP. Links and tests run at the same time, because these
// programs spend most of their time waiting.
func over(t *testing.T, links []string, test func(*hosts)) {
	requireProvider(t)
	t.Parallel()
	for _, link := range links {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			test(newHosts(t, link))
		})
	}
}

// alone runs a measurement over AF_XDP and over UDP. No other test runs at that time.
func alone(t *testing.T, measure func(*hosts)) {
	requireProvider(t)
	for _, link := range []string{"xdp", "udp"} {
		t.Run(link, func(t *testing.T) { measure(newHosts(t, link)) })
	}
}

func newHosts(t *testing.T, link string) *hosts {
	t.Helper()
	h := &hosts{t: t, lab: labtest.New(t, lab.Options{}), plain: link == plainUDP}
	if h.plain {
		must(t, h.lab.SetOffloads(false))
	}
	h.configure(requireProvider(t))
	h.leavesNothing()
	return h
}

// configure writes a dat.conf for each side.
func (h *hosts) configure(library string) {
	h.t.Helper()
	for _, s := range []lab.Side{lab.A, lab.B} {
		h.conf[s] = filepath.Join(h.t.TempDir(), "dat.conf")
		var text strings.Builder
		line := func(name, threads, instance string) {
			fmt.Fprintf(&text, "%s u2.0 %s default %s datxdp.2.0 %q \"\"\n", name, threads, library, instance)
		}
		line(ia, "nonthreadsafe", h.link(s)+" port=17473"+h.security[s])
		line(ia, "threadsafe", h.link(s)+h.security[s])
		line("bad", "nonthreadsafe", h.link(s)+" colour=red")
		line(shared, "nonthreadsafe", h.link(s))
		line(beside, "nonthreadsafe", "udp:"+s.Addr4().String())
		if err := os.WriteFile(h.conf[s], []byte(text.String()), 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
}

// in returns the same hosts for a sub-test. The sub-test fails if its programs leave resources behind.
func (h *hosts) in(t *testing.T) *hosts {
	sub := *h
	sub.t = t
	sub.leavesNothing()
	return &sub
}

// process is a program that runs on a host.
type process struct {
	t    *testing.T
	line string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
	said labtest.Output
}

// start starts a program on a side. The program is killed after a time limit or at the end of the test.
func (h *hosts) start(s lab.Side, line string) *process { return h.startFor(s, line, limit) }

// startFor is start with another time limit.
func (h *hosts) startFor(s lab.Side, line string, limit time.Duration) *process {
	h.t.Helper()
	requireProgram(h.t, strings.Fields(line)[0])
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	args := append([]string{"-oL"}, strings.Fields(line)...) // so that the output of a killed program is complete
	p := &process{t: h.t, line: line, cmd: exec.CommandContext(ctx, "stdbuf", args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "DAT_OVERRIDE="+h.conf[s])
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = time.Second
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		defer cancel()
		p.err = h.lab.Do(s, func() error { // the thread must not end, because the parent-death signal depends on it
			err := p.cmd.Start()
			started <- err
			if err != nil {
				return err
			}
			return p.cmd.Wait()
		})
	}()
	if err := <-started; err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		cancel()
		<-p.done
	})
	return p
}

func requireProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed: it is in dapl2-utils", name)
	}
}

// await waits until cond holds or the program has ended.
func (p *process) await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for !cond() {
		select {
		case <-p.done:
			t.Fatalf("%s ended before %s: %v\n%s", p.line, what, p.err, p.said.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// awaitText waits until a text is n times in the output of the program.
func (p *process) awaitText(t *testing.T, text string, n int) {
	t.Helper()
	p.await(t, fmt.Sprintf("it said %q %d times", text, n), func() bool { return strings.Count(p.said.String(), text) >= n })
}

// awaitListen waits until a process listens on a TCP port in the namespace of the program.
func (p *process) awaitListen(port int) {
	p.t.Helper()
	listening := fmt.Sprintf(":%04X 00000000:0000 0A", port)
	p.await(p.t, fmt.Sprintf("anybody listens on port %d", port), func() bool {
		table, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", p.cmd.Process.Pid))
		return strings.Contains(string(table), listening)
	})
}

// wait waits for the end of the program. It fails the test if the program has to be killed.
func (p *process) wait() string {
	p.t.Helper()
	<-p.done
	if p.err != nil && p.cmd.ProcessState != nil && !p.cmd.ProcessState.Exited() {
		p.t.Errorf("%s: %v\n%s", p.line, p.err, p.said.String())
	}
	return p.said.String()
}

// verdict has the patterns that decide about the output of a program. The exit codes do not depend on the result.
type verdict struct {
	want []string // each must be in the output
	bad  *regexp.Regexp
}

// judge fails the test if the output does not match the verdict.
func (p *process) judge(v verdict) {
	p.t.Helper()
	out := p.wait()
	for _, w := range v.want {
		if !strings.Contains(out, w) {
			p.t.Errorf("%s did not say %q:\n%s", p.line, w, tail(out))
		}
	}
	p.spotless(out, v.bad)
}

// spotless fails the test if a line of the output matches a pattern of errors.
func (p *process) spotless(out string, bad *regexp.Regexp) {
	p.t.Helper()
	if i := slices.IndexFunc(strings.Split(out, "\n"), bad.MatchString); i >= 0 {
		p.t.Errorf("%s said %q:\n%s", p.line, strings.Split(out, "\n")[i], tail(out))
	}
}

// tail returns the end of a long output.
func tail(s string) string {
	if lines := strings.Split(s, "\n"); len(lines) > 60 {
		return "…\n" + strings.Join(lines[len(lines)-60:], "\n")
	}
	return s
}

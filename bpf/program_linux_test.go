//go:build amd64 || arm64

package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// Actions of enum xdp_action.
const (
	xdpPass     = 2
	xdpRedirect = 4
)

func testOptions() Options {
	return Options{Interface: "none", Port: testPort, Sources: []uint16{testSource, 65535}, MAC: localMAC, Queues: 1}
}

// program is the loaded program, not attached to an interface. Tests run it with BPF_PROG_TEST_RUN.
type program struct{ *steerObjects }

func loadProgram(t testing.TB, o Options, multiBuffer bool) program {
	t.Helper()
	labtest.RequireXDP(t)
	objs, err := loadWith(o, multiBuffer)
	if verifier := (*ebpf.VerifierError)(nil); errors.As(err, &verifier) {
		t.Fatalf("%+v", verifier)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := objs.Close(); err != nil {
			t.Error(err)
		}
	})
	return program{objs}
}

// withSocket registers an AF_XDP socket for queue 0. The program redirects to it even though it is not bound.
func (p program) withSocket(t testing.TB) program {
	t.Helper()
	if err := p.Xsks.Put(uint32(0), uint32(xskSocket(t))); err != nil {
		t.Fatal(err)
	}
	return p
}

func xskSocket(t testing.TB) int {
	t.Helper()
	const afXDP = 44
	fd, err := syscall.Socket(afXDP, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(os.NewSyscallError("socket(AF_XDP)", err))
	}
	t.Cleanup(func() { syscall.Close(fd) })
	return fd
}

// run passes one frame through the program and returns its verdict: which counter was incremented. It checks that
// exactly one counter changed, that the program's action fits the verdict, and that the frame is unchanged.
func (p program) run(frame []byte) (steerVerdict, error) {
	before, err := readCounters(p.Counters)
	if err != nil {
		return 0, err
	}
	out := make([]byte, len(frame)+256)
	opts := ebpf.RunOptions{Data: frame, DataOut: out}
	action, err := p.DatxdpSteer.Run(&opts)
	if err != nil {
		return 0, err
	}
	after, err := readCounters(p.Counters)
	if err != nil {
		return 0, err
	}
	v, err := moved(before, after)
	if err != nil {
		return 0, err
	}
	if (action == xdpRedirect) != (v == steerVerdictREDIRECTED) || action != xdpRedirect && action != xdpPass {
		return 0, fmt.Errorf("action %d with verdict %d", action, v)
	}
	if !bytes.Equal(opts.DataOut, frame) {
		return 0, fmt.Errorf("frame changed: got %x, want %x", opts.DataOut, frame)
	}
	return v, nil
}

func moved(before, after Counters) (steerVerdict, error) {
	found := steerVerdictVERDICTS
	for v := range steerVerdictVERDICTS {
		switch n := *after.field(v) - *before.field(v); {
		case n == 0:
		case n == 1 && found == steerVerdictVERDICTS:
			found = v
		default:
			return 0, fmt.Errorf("counters: got %+v after %+v, want one more in one place", after, before)
		}
	}
	if found == steerVerdictVERDICTS {
		return 0, fmt.Errorf("no counter moved: %+v", after)
	}
	return found, nil
}

func BenchmarkProgram(b *testing.B) {
	p := loadProgram(b, testOptions(), true).withSocket(b)
	for name, frame := range map[string][]byte{"ours": frame4(64), "other": put8(frame4(64), offIP4Proto, 6)} {
		b.Run(name, func(b *testing.B) {
			_, took, err := p.DatxdpSteer.Benchmark(frame, 1_000_000, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(took.Nanoseconds()), "ns/frame")
		})
	}
}

package main

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/dat"
)

// answerAs starts a program at 127.0.0.24 that answers each connection request of a datbench as the function says.
func answerAs(t *testing.T, port uint16, answer func(*dat.IA, *dat.PZ, *dat.CR) error) {
	t.Helper()
	o := dat.DefaultOptions()
	o.Port = port
	ia, err := dat.Open("udp:127.0.0.24", o)
	if err != nil {
		t.Fatal(err)
	}
	pz, err := ia.CreatePZ()
	if err != nil {
		t.Fatal(err)
	}
	evd, err := ia.CreateEVD(16, nil, dat.EVDCR|dat.EVDConnection|dat.EVDDTO)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ia.CreatePSP(workload.QualifierOf(plan.Station{}), evd, dat.PSPConsumer); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ev, err := range evd.Events(t.Context()) {
			if err != nil {
				return
			}
			if ev.Number == dat.EventConnectionRequest {
				if err := answer(ia, pz, ev.CR); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	t.Cleanup(func() {
		<-done // the context of the test has ended
		if err := ia.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A server that accepts a row and then does nothing must end the row long before the row's time is over, and the error
// must name the server.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	answerAs(t, 17691, func(ia *dat.IA, pz *dat.PZ, cr *dat.CR) error {
		evd, err := ia.CreateEVD(64, nil, dat.EVDConnection|dat.EVDDTO)
		if err != nil {
			return err
		}
		ep, err := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
		if err != nil {
			return err
		}
		var remote [20]byte // of no memory
		binary.BigEndian.PutUint64(remote[12:], 1<<20)
		return cr.Accept(ep, remote[:])
	})
	got := datbench(t, "run", "127.0.0.24", "--ia", "udp:127.0.0.25", "--port", "17691", "--op", "read", "--metric", "sha256", "--bytes", "1M")
	want := regexp.MustCompile(`127\.0\.0\.24 is alive but has answered nothing for \d+s: see what "datbench server" says there, or start it again`)
	if got.code != exitUsage || !want.MatchString(got.stderr) {
		t.Errorf("exit %d\n%s", got.code, got.stderr)
	}
}

// A refusal without private data must not end in an empty reason.
func TestRefusedWithoutReason(t *testing.T) {
	t.Parallel()
	answerAs(t, 17693, func(_ *dat.IA, _ *dat.PZ, cr *dat.CR) error { return cr.Reject(nil) })
	got := datbench(t, "run", "127.0.0.24", "--ia", "udp:127.0.0.25", "--port", "17693", "--op", "send", "--metric", "lat")
	want := regexp.MustCompile(`127\.0\.0\.24 refused without a reason: a program that is not datbench may serve there`)
	if got.code != exitUsage || !want.MatchString(got.stderr) {
		t.Errorf("exit %d\n%s", got.code, got.stderr)
	}
}

// A command that waits for a file must end at the first signal, because it has nothing to clean up.
func TestSignalEndsReader(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"report", fifo}, {"compare", fifo, fifo}, {"check", fifo}} {
		r := start(t, args...)
		writer, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the command has opened it
		if err != nil {
			t.Fatal(err)
		}
		if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if got := r.wait(t); got.code != -1 { // -1: by the signal
			t.Errorf("%s: exit %d\n%s", args[0], got.code, got.stderr)
		}
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A capture to a pipe that nobody reads must fail at once, with one error.
func TestCaptureToPipe(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	got := datbench(t, "run", "127.0.0.24", "--ia", "udp:127.0.0.25", "--pcap", fifo)
	if want := "datbench: --pcap: open " + fifo + ": no such device or address"; got.code != exitUsage || got.lastLine() != want {
		t.Errorf("exit %d, %q", got.code, got.lastLine())
	}
	reader, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	answerAs(t, 17697, func(_ *dat.IA, _ *dat.PZ, cr *dat.CR) error { // a reader that leaves before the file is complete
		return errors.Join(reader.Close(), cr.Reject(nil))
	})
	got = datbench(t, "run", "127.0.0.24", "--ia", "udp:127.0.0.25", "--port", "17697", "--op", "send", "--metric", "lat", "--pcap", fifo)
	if n := strings.Count(got.stderr, "broken pipe"); got.code != exitUsage || n != 1 {
		t.Errorf("exit %d, the error is there %d times\n%s", got.code, n, got.stderr)
	}
}

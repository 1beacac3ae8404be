//go:build datprovider

package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

// rank is a process of testdata/ranks.c that listens.
type rank struct {
	*process
	qual  uint64
	pid   int
	fixed uint32 // result of dat_psp_create with the qualifier that all ranks want
}

func (h *hosts) rank(line string) rank {
	h.t.Helper()
	r := rank{process: h.start(lab.A, line)}
	r.awaitText(h.t, " child ", 1)
	said := r.said.String()
	var child int
	said = said[strings.Index(said, "qualifier "):]
	if _, err := fmt.Sscanf(said, "qualifier %d process %d fixed %v child %d", &r.qual, &r.pid, &r.fixed, &child); err != nil {
		h.t.Fatalf("%v\n%s", err, said)
	}
	h.t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	r.spotless(said, callsBad)
	return r
}

// inUse is the type of DAT_CONN_QUAL_IN_USE.
const inUse = 0x20000

// TestRanks: of several processes of a host that want one qualifier over UDP, one gets it until it ends, even if a child
// that it has forked goes on. A request reaches the process that has the qualifier. If no process has it, the request
// fails.
func TestRanks(t *testing.T) {
	requireProvider(t)
	t.Parallel()
	ranks := compile(t, "ranks")
	t.Run("udp", func(t *testing.T) {
		h := newHosts(t, "udp")
		all := []rank{h.rank(ranks + " " + shared), h.rank(ranks + " " + shared), h.rank(ranks + " " + shared)}
		for i, r := range all {
			if want := []uint32{0, inUse, inUse}[i]; r.fixed != want {
				t.Errorf("rank %d: dat_psp_create returns %#x, want %#x", i, r.fixed, want)
			}
		}
		for _, from := range []lab.Side{lab.A, lab.B} {
			for _, r := range all {
				line := fmt.Sprintf("%s %s %s %d", ranks, shared, lab.A.Addr4(), r.qual)
				h.start(from, line).judge(verdict{want: []string{fmt.Sprintf("answer %d\n", r.pid)}, bad: callsBad})
			}
		}
		nobody := fmt.Sprintf("%s %s %s %d", ranks, shared, lab.A.Addr4(), all[1].qual+1000)
		h.start(lab.B, nobody).judge(verdict{want: []string{"event 0x4003\n"}, bad: callsBad}) // DAT_CONNECTION_EVENT_NON_PEER_REJECTED
		if err := syscall.Kill(all[0].pid, syscall.SIGKILL); err != nil {                      // its child goes on
			t.Fatal(err)
		}
		<-all[0].done
		if r := h.rank(ranks + " " + shared); r.fixed != 0 {
			t.Errorf("after the first rank was killed, dat_psp_create returns %#x", r.fixed)
		}
	})
}

// TestAdapterBeside: one process opens an interface over AF_XDP and its address over UDP, and listens on the second.
func TestAdapterBeside(t *testing.T) {
	requireProvider(t)
	t.Parallel()
	ranks := compile(t, "ranks")
	t.Run("xdp", func(t *testing.T) {
		h := newHosts(t, "xdp")
		r := h.rank(ranks + " " + ia + " " + beside)
		line := fmt.Sprintf("%s %s %s %d", ranks, ia, lab.A.Addr4(), r.qual)
		h.start(lab.B, line).judge(verdict{want: []string{fmt.Sprintf("answer %d\n", r.pid)}, bad: callsBad})
	})
}

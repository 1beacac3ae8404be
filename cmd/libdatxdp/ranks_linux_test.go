//go:build datprovider

package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

// rank is a process of testdata/ranks.c that listens.
type rank struct {
	*process
	qual uint64
	pid  int
}

func (h *hosts) rank(line string) rank {
	h.t.Helper()
	r := rank{process: h.start(lab.A, line)}
	r.awaitText(h.t, "qualifier ", 1)
	said := r.said.String()
	if _, err := fmt.Sscanf(said[strings.Index(said, "qualifier "):], "qualifier %d process %d", &r.qual, &r.pid); err != nil {
		h.t.Fatalf("%v\n%s", err, said)
	}
	r.spotless(said, callsBad)
	return r
}

// TestRanks: if several processes of a host listen over UDP, a request reaches the process that has the qualifier. If no
// process has it, the request fails.
func TestRanks(t *testing.T) {
	requireProvider(t)
	t.Parallel()
	ranks := compile(t, "ranks")
	t.Run("udp", func(t *testing.T) {
		h := newHosts(t, "udp")
		all := []rank{h.rank(ranks + " " + shared), h.rank(ranks + " " + shared), h.rank(ranks + " " + shared)}
		for _, from := range []lab.Side{lab.A, lab.B} {
			for _, r := range all {
				line := fmt.Sprintf("%s %s %s %d", ranks, shared, lab.A.Addr4(), r.qual)
				h.start(from, line).judge(verdict{want: []string{fmt.Sprintf("answer %d\n", r.pid)}, bad: callsBad})
			}
		}
		nobody := fmt.Sprintf("%s %s %s %d", ranks, shared, lab.A.Addr4(), all[1].qual+1000)
		h.start(lab.B, nobody).judge(verdict{want: []string{"event 0x4003\n"}, bad: callsBad}) // DAT_CONNECTION_EVENT_NON_PEER_REJECTED
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

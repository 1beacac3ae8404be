package doctor

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/datxdp/datxdp/dat"
)

// TestQueueFindings: a stalled queue is an error. A queue on which no packet has arrived is unproven.
func TestQueueFindings(t *testing.T) {
	works := dat.QueueStats{TxProven: true, RxProven: true}
	for _, tt := range []struct {
		name  string
		queue dat.QueueStats
		want  Severity
		found string
	}{
		{"works", works, OK, "1 queue: every one has transmitted and received"},
		{"unproven", dat.QueueStats{Queue: 3, TxProven: true}, Info, "no packet has arrived on queue 3 yet"},
		{"stalled", dat.QueueStats{TxProven: true, RxProven: true, Stalled: true, Stalls: 1}, Error, "packets wait on queue 0"},
		{"revived", dat.QueueStats{TxProven: true, RxProven: true, Stalls: 1, Reopens: 2}, Warning, "has stood still once and moves again; the queue was opened again 2 times"},
		{"quiet", dat.QueueStats{RxProven: true}, Warning, "nothing has been transmitted on queue 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := queueFindings([]dat.QueueStats{tt.queue})
			if len(got) != 1 || got[0].Severity != tt.want || !strings.Contains(got[0].Found, tt.found) {
				t.Errorf("got %+v, want %v, %q", got, tt.want, tt.found)
			}
		})
	}
	if got := queueFindings([]dat.QueueStats{{TxProven: true}, works, {Queue: 2, TxProven: true}}); !strings.Contains(got[0].Found, "queues 0, 2") {
		t.Errorf("got %+v", got)
	}
}

const stalledMetrics = `# HELP datxdp_xdp_queue_proven Whether …
datxdp_xdp_queue_proven{ia="xdp:eth0 port=4000",queue="0",side="rx"} 1
datxdp_xdp_queue_proven{ia="xdp:eth0 port=4000",queue="0",side="tx"} 1
datxdp_xdp_queue_proven{ia="xdp:eth0 port=4000",queue="1",side="rx"} 0
datxdp_xdp_queue_proven{ia="xdp:eth0 port=4000",queue="1",side="tx"} 1
datxdp_xdp_transmit_stalled{ia="xdp:eth0 port=4000",queue="1"} 1
datxdp_xdp_transmit_stalls_total{ia="xdp:eth0 port=4000",queue="1"} 2
`

// TestRunning reads the queues of a running program. Metrics without queues are an error.
func TestRunning(t *testing.T) {
	body := stalledMetrics
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	r, err := Running(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	want := "xdp:eth0 port=4000 does not transmit: packets wait on queue 1 and its transmit ring stands still."
	if len(r.Findings) != 2 || r.Severity != Error || r.Verdict != want || r.Findings[1].Group != "xdp:eth0 port=4000" {
		t.Errorf("got %+v, want %q", r, want)
	}
	body = "go_goroutines 7\n"
	if _, err := Running(t.Context(), address); err == nil || !strings.Contains(err.Error(), "no adapter over AF_XDP") {
		t.Errorf("without an adapter: %v", err)
	}
	if _, err := Running(t.Context(), server.URL+"/nowhere"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("without metrics: %v", err)
	}
}

// TestForeignTexts: texts of other programs and hosts do not control the terminal.
func TestForeignTexts(t *testing.T) {
	const odd = "\x1b]0;owned\a\x9b\u202e"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = io.WriteString(w, strings.ReplaceAll(stalledMetrics, "xdp:eth0", "xdp:"+odd))
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 404 "+odd+"\r\n\r\n")
		_ = c.Close()
	}))
	defer server.Close()
	r, err := Running(t.Context(), server.URL+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	_ = r.Print(&text, false)
	_, err = Running(t.Context(), server.URL+"/status")
	fmt.Fprintln(&text, err)
	if i := strings.IndexFunc(text.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(text.String()) {
		t.Errorf("a control character in\n%q", text.String())
	}
	if n := strings.Count(text.String(), `\x1b]0;owned`); n != 3 {
		t.Errorf("%d quoted texts, want a group, a verdict and a status:\n%s", n, text.String())
	}
}

// A page with very many adapters and queues is read in a time that is proportional to its size.
func TestHostileMetrics(t *testing.T) {
	time := func(n int) time.Duration {
		var page strings.Builder
		for i := range n {
			fmt.Fprintf(&page, "datxdp_xdp_reopens_total{ia=\"%d\",queue=\"%d\"} 1\n", i%2*i, i)
		}
		start := time.Now()
		all, err := readQueues(strings.NewReader(page.String()))
		if err != nil || len(all) != n/2+1 || len(all[0].queues) != n/2 {
			t.Errorf("%d adapters, %v", len(all), err)
		}
		return time.Since(start)
	}
	if small, large := time(10_000), time(160_000); large > 16*6*small {
		t.Errorf("16 times the page takes %v instead of %v", large, small)
	}
}

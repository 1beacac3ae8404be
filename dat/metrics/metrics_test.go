package metrics_test

import (
	"encoding/json"
	"net"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics"
)

// closing closes adapters at the end of a test.
func closing(t *testing.T, ias ...*dat.IA) {
	t.Cleanup(func() {
		for _, ia := range ias {
			if err := ia.Close(dat.CloseAbrupt); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestLint(t *testing.T) {
	ia := open(t, 0, freePort(t))
	closing(t, ia)
	problems, err := testutil.CollectAndLint(metrics.NewCollector("udp:127.0.0.1", ia))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// The page of an exporter passes Prometheus's own check.
func TestPromtool(t *testing.T) {
	promtool := tool(t, "promtool")
	a, b := connect(t)
	closing(t, a.ia, b.ia)
	exchange(t, a, b)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.NewCollector("a", a.ia), metrics.NewCollector("b", b.ia))
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
	e := metrics.NewExporter()
	defer e.Add("a", a.ia)()
	s := httptest.NewServer(e.Handler())
	defer s.Close()
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(get(t, s.URL+"/metrics"))
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

func TestValues(t *testing.T) {
	a, b := connect(t)
	closing(t, b.ia)
	exchange(t, a, b)
	c := metrics.NewCollector("a", a.ia)
	const want = `
# HELP datxdp_connections Connections by state; one that is closing waits for the peer to confirm the end.
# TYPE datxdp_connections gauge
datxdp_connections{ia="a",state="accepting"} 0
datxdp_connections{ia="a",state="closing"} 0
datxdp_connections{ia="a",state="connecting"} 0
datxdp_connections{ia="a",state="draining"} 0
datxdp_connections{ia="a",state="established"} 1
# HELP datxdp_requests_completed_total Sends, writes, reads and atomics completed successfully.
# TYPE datxdp_requests_completed_total counter
datxdp_requests_completed_total{ia="a"} 2
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "datxdp_connections", "datxdp_requests_completed_total"); err != nil {
		t.Error(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	all, err := registry.Gather()
	ok(t, err)
	for _, f := range all {
		if f.GetName() != "datxdp_request_latency_seconds" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		last := h.GetBucket()[len(h.GetBucket())-1]
		if h.GetSampleCount() != 2 || h.GetSampleSum() <= 0 || last.GetCumulativeCount() != 2 || last.GetUpperBound() < 1 {
			t.Errorf("latency of two requests: %v", h)
		}
	}
	ok(t, a.ia.Close(dat.CloseAbrupt))
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d metrics of an adapter that is closed", n)
	}
}

func TestExporter(t *testing.T) {
	e := metrics.NewExporter()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ctx, cancel := testContext(t)
	served := make(chan error)
	go func() { served <- e.Serve(ctx, l) }()
	url := "http://" + l.Addr().String()

	const name = `datxdp_adapter_info{address="127.0.0.1"`
	ia := open(t, 0, freePort(t))
	closing(t, ia)
	remove := e.Add("udp:127.0.0.1", ia)
	e.Add("udp:127.0.0.1", ia)() // the same again: its end is none
	if got := get(t, url+"/metrics"); !strings.Contains(got, name) || !strings.Contains(got, `mode="udp"`) {
		t.Errorf("adapter is not shown in:\n%s", got)
	}
	remove()
	remove()
	if got := get(t, url+"/metrics"); strings.Contains(got, name) {
		t.Errorf("adapter is still shown in:\n%s", got)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestPages(t *testing.T) {
	a, b := connect(t)
	closing(t, a.ia, b.ia)
	e := metrics.NewExporter()
	defer e.Add("a", a.ia)()
	defer e.Add("b", b.ia)()
	s := httptest.NewServer(e.Handler())
	defer s.Close()
	index := get(t, s.URL+"/")
	for page, want := range map[string]string{
		"/metrics":           "datxdp_polls_total",
		"/debug/vars":        "memstats",
		"/debug/pprof/":      "goroutine",
		"/debug/connections": "established",
	} {
		if body := get(t, s.URL+page); !strings.Contains(body, want) {
			t.Errorf("%s: %q is not in\n%s", page, want, body)
		}
		if !strings.Contains(index, `href="`+page+`"`) {
			t.Errorf("the index does not link %s", page)
		}
	}
	var rows map[string][]struct{ State, Peer string }
	ok(t, json.Unmarshal([]byte(get(t, s.URL+"/debug/connections?format=json")), &rows))
	if len(rows["a"]) != 1 || rows["a"][0].State != "established" || rows["a"][0].Peer != hosts[1].String() || len(rows["b"]) != 1 {
		t.Errorf("connections as JSON: %+v", rows)
	}
}

// Adapters open, work and close while they are scraped; no scrape fails or hangs.
func TestScrapeUnderLoad(t *testing.T) {
	e := metrics.NewExporter()
	s := httptest.NewServer(e.Handler())
	defer s.Close()
	stop := make(chan struct{})
	var scrapers sync.WaitGroup
	pages := []string{"/metrics", "/metrics", "/debug/connections"}
	seen := make([]bool, len(pages))
	var scrapes atomic.Int64
	for i, page := range pages {
		scrapers.Go(func() {
			for {
				body := get(t, s.URL+page)
				seen[i] = seen[i] || strings.Contains(body, "established") && strings.Contains(body, "127.0.0.2")
				scrapes.Add(1)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 4 {
		a, b := connect(t)
		removeA, removeB := e.Add("a", a.ia), e.Add("b", b.ia)
		for n := scrapes.Load(); scrapes.Load() < n+int64(3*len(pages)); {
			exchange(t, a, b)
		}
		ok(t, a.ia.Close(dat.CloseAbrupt)) // while it is shown
		removeA()
		removeB()
		ok(t, b.ia.Close(dat.CloseAbrupt))
	}
	close(stop)
	scrapers.Wait()
	if slices.Contains(seen, false) {
		t.Errorf("pages that showed an adapter at work: %v of %v", seen, pages)
	}
}

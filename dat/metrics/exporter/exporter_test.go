package exporter_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics"
	"github.com/datxdp/datxdp/dat/metrics/exporter"
)

// closing closes adapters at the end of a test.
func closing(t *testing.T, ias ...*dat.IA) {
	t.Cleanup(func() {
		for _, ia := range ias {
			if err := ia.Close(); err != nil {
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

// The metrics page of an exporter passes the linter of Prometheus.
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
	e := exporter.New()
	defer show(t, e, "a", a.ia)()
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
# HELP datxdp_connections Number of connections by state. The state closing means that the peer has not confirmed the end yet.
# TYPE datxdp_connections gauge
datxdp_connections{ia="a",state="accepting"} 0
datxdp_connections{ia="a",state="closing"} 0
datxdp_connections{ia="a",state="connecting"} 0
datxdp_connections{ia="a",state="draining"} 0
datxdp_connections{ia="a",state="established"} 1
# HELP datxdp_requests_completed_total Sends, writes, reads and atomics that completed successfully.
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
	ok(t, a.ia.Close())
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d metrics of an adapter that is closed", n)
	}
}

func TestExporter(t *testing.T) {
	e := exporter.New()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ctx, cancel := testContext(t)
	served := make(chan error)
	go func() { served <- e.Serve(ctx, l) }()
	url := "http://" + l.Addr().String()

	const name = `datxdp_adapter_info{address="127.0.0.1"`
	ia := open(t, 0, freePort(t))
	closing(t, ia)
	remove := show(t, e, "udp:127.0.0.1", ia)
	if _, err := e.Add("udp:127.0.0.1", ia); err == nil || !strings.Contains(err.Error(), "udp:127.0.0.1") {
		t.Errorf("the same name again: %v", err)
	}
	if _, err := e.Add("\xff", ia); err == nil {
		t.Error("a name that is not UTF-8 is taken")
	}
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
	e := exporter.New()
	defer show(t, e, "a", a.ia)()
	defer show(t, e, "b", b.ia)()
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

// While the maximum number of debug pages is in progress, a further debug page is refused, but metrics are not.
func TestDebugPagesAreBounded(t *testing.T) {
	e := exporter.New()
	s := httptest.NewServer(e.Handler())
	defer s.Close()
	ctx, cancel := testContext(t)
	var tracers sync.WaitGroup
	busy := func() bool {
		resp, err := client.Get(s.URL + "/debug/vars")
		ok(t, err)
		ok(t, resp.Body.Close())
		return resp.StatusCode == http.StatusServiceUnavailable
	}
	for !busy() { // a page that takes a long time
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/debug/pprof/goroutine?seconds=19", nil)
		ok(t, err)
		tracers.Go(func() {
			if resp, err := client.Do(r); err == nil {
				_ = resp.Body.Close() // the request was refused, or ended with the context
			}
		})
	}
	get(t, s.URL+"/metrics")
	cancel()
	tracers.Wait()
	for busy() { // until the pages have ended
		if t.Context().Err() != nil {
			t.Fatal("pages of clients that are gone are still made")
		}
	}
}

// Pages of connections are written one at a time, at intervals of a second. Metrics do not wait for them.
func TestPagesOfConnectionsArePaced(t *testing.T) {
	e := exporter.New()
	ia := open(t, 0, freePort(t))
	closing(t, ia)
	defer show(t, e, "a", ia)()
	s := httptest.NewServer(e.Handler())
	defer s.Close()
	var mu sync.Mutex
	var ends []time.Time
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			body := get(t, s.URL+"/debug/connections")
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, time.Now())
			if !strings.Contains(body, "ENGINE") {
				t.Errorf("no table in %q", body)
			}
		})
	}
	for range 10 {
		get(t, s.URL+"/metrics")
	}
	readers.Wait()
	if took := ends[2].Sub(ends[0]); took < 1900*time.Millisecond {
		t.Errorf("three pages within %v", took)
	}
}

// Adapters are opened, used and closed during scrapes. No scrape fails or hangs.
func TestScrapeUnderLoad(t *testing.T) {
	e := exporter.New()
	s := httptest.NewServer(e.Handler())
	defer s.Close()
	stop := make(chan struct{})
	var scrapers sync.WaitGroup
	pages := []string{"/metrics", "/metrics", "/debug/connections"}
	seen := make([]atomic.Bool, len(pages))
	var scrapes atomic.Int64
	for i, page := range pages {
		scrapers.Go(func() {
			for {
				body := get(t, s.URL+page)
				if strings.Contains(body, "established") && strings.Contains(body, "127.0.0.2") {
					seen[i].Store(true)
				}
				scrapes.Add(1)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	unseen := func() bool {
		return slices.ContainsFunc([]int{0, 1, 2}, func(i int) bool { return !seen[i].Load() })
	}
	const rounds = 4
	for round := range rounds {
		a, b := connect(t)
		removeA, removeB := show(t, e, "a", a.ia), show(t, e, "b", b.ia)
		patient := time.Now().Add(patience) // pages of connections are a second apart
		for n := scrapes.Load(); scrapes.Load() < n+int64(3*len(pages)) || round == rounds-1 && unseen() && time.Now().Before(patient); {
			exchange(t, a, b)
		}
		ok(t, a.ia.Close()) // while it is exported
		removeA()
		removeB()
		ok(t, b.ia.Close())
	}
	close(stop)
	scrapers.Wait()
	if unseen() {
		t.Errorf("not every page of %v has shown an adapter at work", pages)
	}
}

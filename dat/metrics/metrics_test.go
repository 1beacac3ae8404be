package metrics_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics"
)

// open is an adapter over kernel UDP on a port of its own.
func open(t *testing.T, port uint16) *dat.IA {
	t.Helper()
	o := dat.DefaultOptions()
	o.Port = port
	ia, err := dat.Open("udp:127.0.0.1", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ia.Close(dat.CloseAbrupt); err != nil {
			t.Error(err)
		}
	})
	return ia
}

func TestLint(t *testing.T) {
	problems, err := testutil.CollectAndLint(metrics.NewCollector("udp:127.0.0.1", open(t, 17601)))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestEveryCounter: a new field of the statistics must have a metric. Sums that stand for nothing a
// scraper wants are named here.
func TestEveryCounter(t *testing.T) {
	fields := 0
	count := func(v reflect.Type) {
		for i := range v.NumField() {
			if v.Field(i).Type.Kind() == reflect.Uint64 {
				fields++
			}
		}
	}
	var s dat.Stats
	count(reflect.TypeOf(s.Stats))
	count(reflect.TypeOf(s.Link))
	const others = 2 // info and connections
	got := testutil.CollectAndCount(metrics.NewCollector("udp:127.0.0.1", open(t, 17602)))
	if got != fields+others {
		t.Errorf("got %d metrics for %d counters and %d others", got, fields, others)
	}
}

func TestInfo(t *testing.T) {
	c := metrics.NewCollector("udp:127.0.0.1", open(t, 17603))
	const want = `
# HELP datxdp_connections Connections that exist now.
# TYPE datxdp_connections gauge
datxdp_connections{ia="udp:127.0.0.1"} 0
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "datxdp_connections"); err != nil {
		t.Error(err)
	}
}

func TestExporter(t *testing.T) {
	e := metrics.NewExporter()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- e.Serve(ctx, l) }()

	const name = `datxdp_adapter_info{address="127.0.0.1"`
	remove := e.Add("udp:127.0.0.1", open(t, 17604))
	if got := scrape(t, l); !strings.Contains(got, name) || !strings.Contains(got, `mode="udp"`) {
		t.Errorf("adapter is not shown in:\n%s", got)
	}
	remove()
	if got := scrape(t, l); strings.Contains(got, name) {
		t.Errorf("adapter is still shown in:\n%s", got)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func scrape(t *testing.T, l net.Listener) string {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://%s/metrics", l.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // it has been read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

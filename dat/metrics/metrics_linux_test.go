package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Over AF_XDP the metrics include the rings, the kernel's counters and the verdicts of the XDP program.
func TestXDP(t *testing.T) {
	labtest.RequireXDP(t)
	l, err := lab.New(lab.Options{})
	ok(t, err)
	defer l.Close() // after the adapter
	var ia *dat.IA
	ok(t, l.Do(lab.A, func() (err error) {
		ia, err = dat.Open("xdp:"+lab.Interface, dat.DefaultOptions())
		return err
	}))
	c := metrics.NewCollector("xdp", ia)
	for name, want := range map[string]int{
		"datxdp_xdp_ring_used_slots": 4, "datxdp_xdp_ring_slots": 4, "datxdp_steering_packets_total": 6,
		"datxdp_xdp_receive_dropped_packets_total": 2, "datxdp_xdp_invalid_descriptors_total": 2, "datxdp_xdp_ring_empty_total": 2,
		"datxdp_xdp_queue_proven": 2, "datxdp_xdp_transmit_stalled": 1, "datxdp_xdp_transmit_stalls_total": 1, "datxdp_xdp_reopens_total": 1,
	} {
		if got := testutil.CollectAndCount(c, name); got != want {
			t.Errorf("%s: %d series, want %d", name, got, want)
		}
	}
	proven := `# HELP datxdp_xdp_queue_proven 1 if a side of an AF_XDP socket is known to work, otherwise 0. tx: a transmitted frame has completed. rx: a packet has arrived.
# TYPE datxdp_xdp_queue_proven gauge
datxdp_xdp_queue_proven{ia="xdp",queue="0",side="rx"} 0
datxdp_xdp_queue_proven{ia="xdp",queue="0",side="tx"} 1
`
	ok(t, testutil.CollectAndCompare(c, strings.NewReader(proven), "datxdp_xdp_queue_proven"))
	problems, err := testutil.CollectAndLint(c)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	ok(t, ia.Close())
}

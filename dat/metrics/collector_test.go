package metrics

import (
	"encoding/base64"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/datxdp/datxdp/dat"
)

// open opens an adapter over kernel UDP.
func open(t *testing.T) *dat.IA {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := dat.DefaultOptions()
	o.Port = uint16(c.LocalAddr().(*net.UDPAddr).Port)
	_ = c.Close() // nothing was sent
	ia, err := dat.Open("udp:127.0.0.1", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ia.Close() }) // the test may have closed it
	return ia
}

// The label security must say the mode of the adapter.
func TestSecurityLabel(t *testing.T) {
	for key, want := range map[string]string{"": "plaintext", base64.StdEncoding.EncodeToString([]byte("thirty-two bytes of a secret key")): "secure"} {
		t.Setenv("DATXDP_KEY", key)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(NewCollector("a", open(t)))
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range families {
			if f.GetName() == "datxdp_adapter_info" {
				for _, l := range f.GetMetric()[0].GetLabel() {
					if l.GetName() == "security" {
						got = l.GetValue()
					}
				}
			}
		}
		if got != want {
			t.Errorf("security is %q, want %q", got, want)
		}
	}
}

// Many concurrent scrapes, and scrapes in the following second, read the counters once.
func TestScrapesShareOneRead(t *testing.T) {
	c := NewCollector("a", open(t))
	var reads atomic.Int32
	c.readStats = func() (dat.Stats, error) {
		reads.Add(1)
		time.Sleep(10 * time.Millisecond) // so that concurrent scrapes arrive during the read
		return c.ia.Stats()
	}
	for range 3 {
		began, was := time.Now(), reads.Load()
		var scrapers sync.WaitGroup
		for range 8 {
			scrapers.Go(func() {
				for range 20 {
					if n := testutil.CollectAndCount(c, "datxdp_polls_total"); n != 1 {
						t.Errorf("%d series of a counter", n)
					}
				}
			})
		}
		scrapers.Wait()
		took := time.Since(began)
		if n, most := reads.Load()-was, 1+int32(took/statsInterval); n < 1 || n > most {
			t.Fatalf("%d reads in %v, want one a second", n, took)
		}
		c.mu.Lock()
		c.readAt = c.readAt.Add(-statsInterval) // a second later
		c.mu.Unlock()
	}
	if err := c.ia.Close(); err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d metrics of an adapter that is closed", n)
	}
}

package workload

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/dat"
)

// An adapter that is open twice is exported once, until both have been closed.
func TestShown(t *testing.T) {
	s := newExported()
	count := func() int {
		w := httptest.NewRecorder()
		s.exporter.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return strings.Count(w.Body.String(), "\ndatxdp_polls_total{")
	}
	o := dat.DefaultOptions()
	o.Port = 17999
	var hide [2]func()
	for i := range hide {
		ia, err := dat.Open("udp:127.0.0.1", o)
		if err != nil {
			t.Fatal(err)
		}
		defer ia.Close() // the last open IA of the test
		if hide[i], err = s.add("udp:127.0.0.1", ia); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n != 1 {
		t.Errorf("shown %d times with two opens, want once", n)
	}
	hide[0]()
	if n := count(); n != 1 {
		t.Errorf("shown %d times after the first is hidden, want once", n)
	}
	hide[1]()
	if n := count(); n != 0 {
		t.Errorf("shown %d times after both are hidden", n)
	}
}

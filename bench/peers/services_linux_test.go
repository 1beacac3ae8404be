package main

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestServices runs every service over every transport, shortened.
func TestServices(t *testing.T) {
	labtest.RequireXDP(t)
	file := t.TempDir() + "/t.json"
	out, err := program(t, "services", "--repeat", "2", "--duration", "50ms", "--loss", "0,1", "--json", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	r := &serviceReport{}
	if err := errors.Join(err, json.Unmarshal(text, r)); err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 2*len(allServices) {
		t.Errorf("%d cells", len(r.Cells))
	}
	for _, c := range r.Cells {
		for name, samples := range map[string][]sample{"TCP": c.TCP, "datxdp": c.XDP} {
			if len(samples) != 2 {
				t.Errorf("%s over %s at %g %%: %d rounds", c.Service, name, c.Loss, len(samples))
			}
			for _, s := range samples {
				if s.P50 <= 0 || s.P99 < s.P50 || s.CPU <= 0 {
					t.Errorf("%s over %s at %g %%: got %+v", c.Service, name, c.Loss, s)
				}
			}
		}
	}
}

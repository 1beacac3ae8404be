package result

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestJSONKeys: every key of the JSON exists and keeps its name, because scripts depend on both.
func TestJSONKeys(t *testing.T) {
	want := []string{"op", "metric", "size", "transport", "mode", "mtu", "p50_us", "p99_us", "p999_us", "msgs_per_s",
		"gbps", "samples", "retransmits", "drops", "valid", "reason"}
	b, err := json.Marshal(Result{})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCount(t *testing.T) {
	r := Result{Row: Row{Size: 1000}}
	r.Count(500, 250*time.Millisecond)
	if r.MsgsPerSec != 2000 || r.Gbps != 0.016 || r.Samples != 500 {
		t.Errorf("got %+v", r)
	}
	r.Count(0, 0)
	if r.Samples != 0 {
		t.Errorf("got %d samples", r.Samples)
	}
}

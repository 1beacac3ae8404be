package plan

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

func soundSpec() Spec {
	return Spec{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, Depth: 8, Connections: 1}, Duration: time.Second}
}

// TestSpecBounded: every number that a client sends is limited. This must also hold for new fields.
func TestSpecBounded(t *testing.T) {
	endless := map[string]bool{"Count": true, "Bytes": true} // not limited themselves, because the duration limits the row
	for _, f := range peerFields {
		if f.Type.Kind() == reflect.String || f.Type.Kind() == reflect.Bool {
			continue
		}
		for _, v := range []int64{math.MinInt64, math.MaxInt64} {
			s := soundSpec()
			reflect.ValueOf(&s).Elem().FieldByIndex(f.Index).SetInt(v)
			if _, _, err := ParseSpec(s.AppendTo(nil)); err == nil && !(v > 0 && endless[f.Name]) {
				t.Errorf("%s of %d is taken", f.Name, v)
			}
		}
	}
}

// TestSpecShort: a truncated spec, and a spec of another version, are refused.
func TestSpecShort(t *testing.T) {
	text := soundSpec().AppendTo(nil)
	for n := range text {
		if _, _, err := ParseSpec(text[:n]); !errors.Is(err, ErrSpec) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	if _, rest, err := ParseSpec(append(text, 7)); err != nil || len(rest) != 1 {
		t.Errorf("whole: %v, and %d bytes follow", err, len(rest))
	}
	if other := fingerprintOf(peerFields[1:]); other == fingerprint {
		t.Error("a spec with a field less has the same fingerprint")
	}
}

package wire

import (
	"math"
	"testing"
	"time"
)

func TestTimeAddDoesNotWrap(t *testing.T) {
	for _, tc := range []struct {
		t    Time
		d    time.Duration
		want Time
	}{
		{5, 3, 8}, {5, -7, -2}, {0, math.MaxInt64, never}, {1, math.MaxInt64, never}, {never, 1, never}, {never, -1, never - 1},
	} {
		if got := tc.t.Add(tc.d); got != tc.want {
			t.Errorf("%d + %d: got %d, want %d", tc.t, tc.d, got, tc.want)
		}
	}
}

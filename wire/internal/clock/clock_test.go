package clock

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
		{5, 3, 8}, {5, -7, -2}, {0, math.MaxInt64, Never}, {1, math.MaxInt64, Never}, {Never, 1, Never}, {Never, -1, Never - 1},
	} {
		if got := tc.t.Add(tc.d); got != tc.want {
			t.Errorf("%d + %d: got %d, want %d", tc.t, tc.d, got, tc.want)
		}
	}
}

func TestStampIsNeverZero(t *testing.T) {
	for _, at := range []Time{0, 1, 1 << StampShift, 1 << (32 + StampShift)} {
		if at.Stamp() == 0 {
			t.Errorf("the stamp of %d is 0", at)
		}
	}
}

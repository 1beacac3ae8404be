package seq

import "testing"

func TestOrderAcrossWrap(t *testing.T) {
	for _, base := range []Num{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		for _, d := range []Num{1, 2, 255, 1<<31 - 1} {
			a, b := base, base+d
			if !a.Less(b) || b.Less(a) || !a.LessEq(b) || b.LessEq(a) {
				t.Errorf("order of %d and %d+%d is wrong", a, a, d)
			}
			if got := b.Sub(a); got != int(d) {
				t.Errorf("Sub(%d, %d) = %d, want %d", b, a, got, d)
			}
			if got := a.Sub(b); got != -int(d) {
				t.Errorf("Sub(%d, %d) = %d, want %d", a, b, got, -int(d))
			}
		}
		if base.Less(base) || !base.LessEq(base) {
			t.Errorf("%d compared with itself is wrong", base)
		}
	}
}

package xdp

import "testing"

func TestPacer(t *testing.T) {
	const most = 4 * hotFrames
	p := newFillLevel(most, 0)
	after := func(waiting, want uint32) {
		t.Helper()
		if p.adjust(waiting); p.target != want {
			t.Fatalf("%d waiting: target %d, want %d", waiting, p.target, want)
		}
	}
	after(hotFrames/2, hotFrames)
	after(hotFrames/2+1, most) // late
	for range onTimeFrames/64 - 1 {
		after(64, most)
	}
	after(hotFrames, most) // late again: the count of frames restarts
	for range onTimeFrames/64 - 1 {
		after(64, most)
	}
	after(64, hotFrames)
	after(0, hotFrames)

	if p = newFillLevel(16, 0); p.target != 16 || p.high != 16 {
		t.Errorf("of 16 frames: %+v", p)
	}
}

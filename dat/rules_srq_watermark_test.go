package dat

import (
	"testing"
)

var epSetWatermarkRules = []rule{
	{"the endpoint has to be there", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).common(1, 8).point(nil)
		ok(t, p.Free())
		wants(t, "freed", p.SetWatermark(1, 1), ErrInvalidHandle)
		wants(t, "none", (*EP)(nil).SetWatermark(1, 1), ErrInvalidHandle)
	}},
	{"the endpoint has to share a queue", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).point(nil)
		wants(t, "an ordinary one", p.SetWatermark(1, 1), ErrModelNotSupported)
	}},
	{"marks may be 0 or more, or infinite", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).common(1, 8).point(nil)
		wants(t, "soft", p.SetWatermark(-2, 1), ErrInvalidParameter)
		wants(t, "hard", p.SetWatermark(1, -2), ErrInvalidParameter)
		ok(t, p.SetWatermark(WatermarkInfinite, WatermarkInfinite))
		ok(t, p.SetWatermark(0, 0))
		ok(t, p.SetWatermark(1<<40, 1<<40))
	}},
	{"beyond the soft mark there is one event", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 8)
		c.post(0, 8)
		ok(t, ys[0].SetWatermark(2, WatermarkInfinite))
		xs[0].message(64)
		xs[0].message(64)
		c.host.nothingAsync()
		xs[0].message(64)
		ys[0].softMark()
		xs[0].message(64)
		c.host.nothingAsync()
	}},
	{"the soft event comes again after the watermark is set again, immediately if it is exceeded", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 8)
		c.post(0, 8)
		for range 2 {
			xs[0].message(64)
		}
		for range 3 {
			ok(t, ys[0].SetWatermark(1, WatermarkInfinite))
			ys[0].softMark()
			c.host.nothingAsync()
		}
		ok(t, ys[0].SetWatermark(2, WatermarkInfinite))
		c.host.nothingAsync()
	}},
	{"a receive that is being filled counts", func(t *testing.T, n network) {
		_, _, y, _ := sendPart(t, n)
		ok(t, y.SetWatermark(1, 1))
		y.host.nothingAsync()
		ok(t, y.SetWatermark(0, WatermarkInfinite))
		y.softMark()
	}},
	{"a completion that was taken does not count", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 8)
		c.post(0, 8)
		ok(t, ys[0].SetWatermark(1, 1))
		for i := range uint64(8) {
			xs[0].message(64)
			ys[0].got(i)
		}
		c.host.nothingAsync()
		ys[0].still()
	}},
	{"beyond the hard mark the connection breaks", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 8)
		c.post(0, 8)
		ok(t, ys[0].SetWatermark(WatermarkInfinite, 2))
		xs[0].message(64)
		xs[0].message(64)
		ys[0].host.nothingAsync()
		xs[0].send(64)
		xs[0].expect(EventBroken)
		ys[0].expect(EventBroken)
		ys[0].got(0)
		ys[0].got(1)
		ys[0].flushed(2)
		c.counts(5, 5)
		if s := ys[0].State(); s != EPDisconnected {
			t.Error(s)
		}
	}},
	{"setting a hard watermark that is exceeded breaks the connection immediately", func(t *testing.T, n network) {
		_, x, y, v := sendPart(t, n)
		ok(t, y.SetWatermark(WatermarkInfinite, 0))
		v.shut.Store(false)
		y.expect(EventBroken)
		y.flushed(0)
		x.expect(EventBroken)
	}},
	{"the marks are independent of each other", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 8)
		c.post(0, 8)
		ok(t, ys[0].SetWatermark(3, 1))
		xs[0].message(64)
		xs[0].send(64)
		ys[0].expect(EventBroken)
		ys[0].lastReceive()
		c.host.nothingAsync()
	}},
	{"infinite disarms", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 8)
		c.post(0, 8)
		ok(t, ys[0].SetWatermark(0, 0))
		ok(t, ys[0].SetWatermark(WatermarkInfinite, WatermarkInfinite))
		for range 4 {
			xs[0].message(64)
		}
		c.host.nothingAsync()
	}},
	{"marks are one endpoint's, and live through connections", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c := b.common(8, 64)
		c.post(0, 8)
		u, v := a.point(nil), c.point(nil)
		x, y := a.point(nil), c.point(nil)
		ok(t, y.SetWatermark(0, WatermarkInfinite))
		join(u, v)
		join(x, y)
		u.message(64)
		u.message(64)
		b.nothingAsync()
		x.message(64)
		y.softMark()
		ok(t, y.Disconnect(CloseAbrupt))
		y.lastReceive()
		ok(t, y.SetWatermark(0, WatermarkInfinite))
		y.softMark() // the completion of the receive was not taken
	}},
}

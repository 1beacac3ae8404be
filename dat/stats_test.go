package dat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
)

// wait takes n completions.
func (p *point) wait(e *EVD, n int) {
	p.host.t.Helper()
	for range n {
		await(p.host.t, e, EventDTOCompletion)
	}
}

func TestStats(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		const count = 20
		for i := range uint64(count) {
			ok(t, y.PostRecv(y.seg(0, 64), i, 0))
		}
		for i := range uint64(count) {
			ok(t, x.PostSend(x.seg(0, 64), i, 0))
		}
		x.wait(x.request, count)
		eventually(t, "receives", func() bool { return y.recv.Len() == count })

		sa, sb := must(a.ia.Stats())(t), must(b.ia.Stats())(t)
		if sa.TxRequests != count || sb.RxMessages != count || sa.Established != 1 || sa.Connects != 1 || sb.Accepts != 1 {
			t.Errorf("after %d messages: sender %+v\nreceiver %+v", count, sa, sb)
		}
		if sa.Window <= 0 || sa.Polls == 0 || sa.Latency.Sum == 0 || sa.RoundTrip.Sum == 0 || sa.Requests != 0 {
			t.Errorf("sender: %+v", sa)
		}
		if d := sb.Dispatchers; d.Queued != count || d.Longest != count || d.Fullest != count/1024. {
			t.Errorf("receiver's dispatchers: %+v", d)
		}
		for _, q := range sa.Queues { // AF_XDP
			if len(q.Rings) != 4 || len(q.Kernel) != 6 || q.Rings[0].Used == 0 {
				t.Errorf("queue %+v", q)
			}
		}
	})
}

func TestConnections(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		ok(t, y.PostRecv(y.seg(0, 64), 1, 0))
		for i := range uint64(3) {
			ok(t, x.PostSend(x.seg(0, 64), i, 0)) // two of them find no receive
		}
		x.wait(x.request, 1)
		eventually(t, "the second message to wait", func() bool { return must(a.ia.Connections())(t)[0].Starved })
		all := must(a.ia.Connections())(t)
		if len(all) != 1 {
			t.Fatalf("%d connections", len(all))
		}
		c := all[0]
		if c.Peer != b.addr || c.Qual != testQual || c.Passive || c.Requests != 2 || c.Credits != 0 || c.RTT <= 0 || c.Window <= 0 {
			t.Errorf("got %+v", c)
		}
		var text bytes.Buffer
		ok(t, a.ia.Dump(&text))
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 2 || len(strings.Fields(lines[0])) != 24 {
			t.Fatalf("dump:\n%s", text.String())
		}
		for _, want := range []string{"established", b.addr.String(), "0xda7", "active", "0 starved"} {
			if !strings.Contains(lines[1], want) {
				t.Errorf("%q is not in %s", want, lines[1])
			}
		}
		if b, err := json.Marshal(c); err != nil || !strings.Contains(string(b), `"State":"established"`) {
			t.Errorf("as JSON %s, %v", b, err)
		}
		if at := strings.Index(lines[0], "CREDITS"); !strings.HasPrefix(string([]rune(lines[1])[at:]), "0 starved") {
			t.Errorf("the line is not in the columns of its head:\n%s", text.String())
		}
		wants(t, "no writer", a.ia.Dump(nil), ErrInvalidParameter)
		wants(t, "no function", a.ia.EachConnection(nil), ErrInvalidParameter)
		if err := a.ia.EachConnection(func(*ConnInfo) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("the error of a row came back as %v", err)
		}
	})
}

func TestTriggersAreCounted(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	cno := must(h.ia.CreateCNO(nil))(t)
	evd := must(h.ia.CreateEVD(4, cno, EVDSoftware))(t)
	ok(t, evd.PostSE(1))
	if s := must(h.ia.Stats())(t); s.Triggers != 1 || s.Wakeups != 0 {
		t.Errorf("after one event: %d triggers, %d wake-ups", s.Triggers, s.Wakeups)
	}
	if _, err := cno.Wait(0); err != nil { // takes the trigger that was kept
		t.Error(err)
	}
	woken := make(chan error)
	go func() { _, err := cno.Wait(patience); woken <- err }()
	eventually(t, "a sleeper", func() bool { return must(h.ia.Stats())(t).Sleeps > 0 })
	ok(t, evd.PostSE(2))
	ok(t, <-woken)
	if s := must(h.ia.Stats())(t); s.Triggers != 2 || s.Wakeups != 1 {
		t.Errorf("after two events: %d triggers, %d wake-ups", s.Triggers, s.Wakeups)
	}
}

// This test compares the log of an adapter from open to close, without the parts that differ between runs.
func TestLog(t *testing.T) {
	var text bytes.Buffer
	o := Options{Logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "port" {
			return slog.Attr{}
		}
		return a
	}}))}
	n := newSim(t)
	a, b := newHost(t, n, 0, o), newHost(t, n, 1, Options{})
	b.listen(testQual, 4)
	x, y := pair(a, b, nil)
	ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, RMRTriplet{Context: 1, Address: 1, Length: 8}, 0)) // no such memory
	x.expect(EventBroken)
	y.expect(EventBroken)
	z, w := pair(a, b, nil)
	ok(t, w.Disconnect(CloseAbrupt))
	z.expect(EventDisconnected)
	v := a.point(nil)
	ok(t, v.Connect(b.addr, testQual, patience, nil))
	ok(t, b.request(t).Reject(nil))
	v.expect(EventPeerRejected)
	ok(t, a.ia.Close())
	const to = ` ia=link peer=10.0.0.2 qualifier=3495 queue=0`
	want := fmt.Sprintf(`level=INFO msg="dat: opened" ia=link mode=sim address=10.0.0.1 queues=1 offload="" security=plaintext
level=DEBUG msg="dat: connecting"%[1]s
level=INFO msg="dat: established"%[1]s
level=WARN msg="dat: connection broke"%[1]s reason="closed by the peer: remote access refused: key, range, right or zone is wrong"
level=DEBUG msg="dat: connecting"%[1]s
level=INFO msg="dat: established"%[1]s
level=INFO msg="dat: disconnected"%[1]s
level=DEBUG msg="dat: connecting"%[1]s
level=INFO msg="dat: not connected"%[1]s reason=DAT_CONNECTION_EVENT_PEER_REJECTED hint="the peer's program rejected the request"
level=INFO msg="dat: closed" ia=link
`, to)
	if got := text.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// That a connection broke is logged once, with the first failed completion or with the event, whichever the consumer takes
// first. The ends of connections that did not break are not logged as broken.
func TestBrokenIsLoggedOnce(t *testing.T) {
	for _, first := range []string{"a flushed receive", "the failed request", "the event"} {
		t.Run(first, func(t *testing.T) {
			var text bytes.Buffer
			o := Options{Logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))}
			n := newSim(t)
			a, b := newHost(t, n, 0, o), newHost(t, n, 1, Options{})
			b.listen(testQual, 4)
			x, y := pair(a, b, nil)
			ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
			ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, RMRTriplet{Context: 1, Address: 1, Length: 8}, 0)) // no such memory
			y.expect(EventBroken)
			takes := map[string]func(){
				"a flushed receive":  func() { x.done(x.recv, 1, DTOReceive, DTOFlushed, 0) },
				"the failed request": func() { x.done(x.request, 2, DTORDMAWrite, DTORemoteAccess, 0) },
				"the event":          func() { x.expect(EventBroken) },
			}
			takes[first]()
			delete(takes, first)
			const line = `msg="dat: connection broke" ia=link peer=10.0.0.2 qualifier=3495 queue=0 reason="closed by the peer: remote access refused`
			if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, line) {
				t.Errorf("got %s", got)
			}
			for _, take := range takes {
				take()
			}
			z, w := pair(a, b, nil)
			ok(t, z.PostRecv(z.seg(0, 8), 3, 0))
			ok(t, w.Disconnect(CloseAbrupt))
			z.done(z.recv, 3, DTOReceive, DTOFlushed, 0)
			if got := text.String(); strings.Count(got, "\n") != 1 {
				t.Errorf("then %s", got)
			}
		})
	}
}

// asking is a log handler that makes calls which need the locks of the adapters.
type asking struct {
	slog.Handler
	ask func()
}

func (h *asking) Enabled(context.Context, slog.Level) bool      { return true }
func (h *asking) Handle(_ context.Context, r slog.Record) error { h.ask(); return nil }
func (h *asking) WithAttrs([]slog.Attr) slog.Handler            { return h }

// TestLogHandlerMayCall: a log handler may call the adapter that logs, because no lock is held while logging.
func TestLogHandlerMayCall(t *testing.T) {
	var hosts []*host
	var points []*point
	heard := 0
	handler := &asking{ask: func() {
		heard++
		for _, h := range hosts {
			_, err := h.ia.Stats()
			ok(t, err)
		}
		for _, p := range points {
			p.State()
			_, err := p.Query()
			ok(t, err)
		}
	}}
	o := Options{Logger: slog.New(handler)}
	n := newSim(t)
	a, b := newHost(t, n, 0, o), newHost(t, n, 1, o)
	b.listen(testQual, 4)
	hosts = []*host{a, b}
	x, y := a.point(nil), b.point(nil)
	points = []*point{x, y}
	join(x, y)
	v := a.point(nil)
	ok(t, v.Connect(b.addr, testQual, patience, nil))
	ok(t, b.request(t).Reject(nil))
	v.expect(EventPeerRejected)
	const opened, connected, rejected = 2, 4, 3 // records: 2 opens; connecting, accepting, 2 established; connecting, declined, not connected
	if heard != opened+connected+rejected {
		t.Errorf("heard %d times, want %d", heard, opened+connected+rejected)
	}

	ok(t, y.Disconnect(CloseAbrupt))
	eventually(t, "the news", func() bool { return x.connect.Len() == 1 })
	ok(t, x.EP.Free())
	was := heard
	points = points[1:]
	ok(t, x.connect.Free()) // the dispatcher has an event
	if heard != was {
		t.Error("an event that went with its dispatcher was logged")
	}
	hosts, points = nil, nil // the cleanups close them
}

// Stats does not hold the IA's lock while it waits for an engine.
func TestStatsHoldNoLock(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	d := h.ia.a.drivers[0]
	if !d.Own() {
		t.Fatal("no engine")
	}
	done := make(chan error, 2)
	go func() { _, err := h.ia.Stats(); done <- err }()
	go func() { _, err := h.ia.Connections(); done <- err }()
	for range 100 { // one of the calls meets the engine while it is owned
		_, err := h.ia.Query()
		ok(t, err)
		runtime.Gosched()
	}
	d.Disown()
	ok(t, <-done)
	ok(t, <-done)
}

package dat

import (
	"context"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// syncBuffer is a text to which several goroutines may write while others read it.
type syncBuffer struct {
	mu      sync.Mutex
	text    strings.Builder
	written chan struct{} // closed by the next Write; nil if nobody waits
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written != nil {
		close(b.written)
		b.written = nil
	}
	return b.text.Write(p)
}

// await returns the text as soon as it has the substring, or at the end of patience. The lines of secure mode are written
// by a goroutine of their own.
func (b *syncBuffer) await(substring string) string {
	limit := time.After(patience)
	for {
		b.mu.Lock()
		text := b.text.String()
		if b.written == nil {
			b.written = make(chan struct{})
		}
		written := b.written
		b.mu.Unlock()
		if strings.Contains(text, substring) {
			return text
		}
		select {
		case <-written:
		case <-limit:
			return text
		}
	}
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestRefusedHandshakeIsLogged: a line names the address, the reason, and the public key if the requester has proven it.
func TestRefusedHandshakeIsLogged(t *testing.T) {
	for _, tc := range []struct {
		name, words, server string
		reason              string
		key                 bool // the line has the key of the requester
		hint                string
	}{
		{"wrong server key", "", "carol", "key", false, "the requester expects another key of this host"},
		{"unknown", "", "bob", "unknown", true, "no line of the file of peers has this key"},
		{"expired", "expires=2020-01-01", "bob", "expired", true, "its line in the file of peers has expired"},
		{"wrong address", "from=192.0.2.0/24", "bob", "address", true, "from= in its line"},
		{"wrong service", "services=1", "bob", "service", true, "services= in its line"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newKeyring(t)
			var log syncBuffer
			known := "alice"
			if tc.reason == "unknown" {
				known = "carol"
			}
			o := k.options("bob", k.line(known, tc.words))
			o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			n := newSim(t)
			a, b := newHost(t, n, 0, k.options("alice", "")), newHost(t, n, 1, o)
			b.listen(testQual, 64)
			x := a.point(nil)
			if tc.reason == "service" {
				x.dialAs(b, patience, k.publicOf(tc.server), "")
				x.expect(EventNonPeerRejected)
			} else {
				x.dialAs(b, refusedAfter, k.publicOf(tc.server), "")
				x.expect(EventTimedOut)
			}
			key := ""
			if tc.key {
				key = ` key=` + regexp.QuoteMeta(`"`+k.publicOf("alice").String()+`"`) + ` name=` + map[bool]string{true: "alice", false: `""`}[known == "alice"] + ` qualifier=\d+`
			}
			want := regexp.MustCompile(`level=WARN msg="dat: handshake refused" ia=link peer=` + regexp.QuoteMeta(a.addr.String()) + ` reason=` + tc.reason + key + ` hint="` + tc.hint)
			if got := log.await("handshake refused"); !want.MatchString(got) || strings.Contains(got, "DATXDP") {
				t.Errorf("the log says %q, want %s", got, want)
			}
		})
	}
}

// refusalsStick is a slog.Handler that waits with lines about refused handshakes until it is released.
type refusalsStick struct {
	slog.Handler
	stuck   func() // closes the channel that the test waits for, once
	release chan struct{}
}

func (h *refusalsStick) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *refusalsStick) Enabled(context.Context, slog.Level) bool { return true }

func (h *refusalsStick) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "dat: handshake refused" {
		h.stuck()
		<-h.release
	}
	return nil
}

// Attack 28: a stranger fills the log, and nobody reads it. Others connect.
func TestAttack28StuckLog(t *testing.T) {
	k := newKeyring(t)
	o := k.options("bob", k.line("alice", ""))
	stuck := make(chan struct{})
	h := &refusalsStick{slog.DiscardHandler, sync.OnceFunc(func() { close(stuck) }), make(chan struct{})}
	defer close(h.release)
	o.Logger = slog.New(h)
	n := newSim(t)
	stranger, a, b := newHost(t, n, 0, k.options("carol", "")), newHost(t, n, 1, k.options("alice", "")), newHost(t, n, 2, o)
	b.listen(testQual, 64)
	refused := stranger.point(nil)
	refused.dialAs(b, refusedAfter, k.publicOf("bob"), "")
	refused.expect(EventTimedOut)
	<-stuck
	x, y := a.point(nil), b.point(nil)
	joinAs(x, y, k.publicOf("bob"), "")
	proves(x, y)
}

// TestHintOfSecureMode: the log of a refused requester says what to look at. The hints of the events, such as a firewall,
// would be wrong.
func TestHintOfSecureMode(t *testing.T) {
	k := newKeyring(t)
	var log syncBuffer
	o := k.options("alice", k.line("bob", ""))
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	n := newSim(t)
	a, b := newHost(t, n, 0, o), newHost(t, n, 1, k.options("bob", k.line("alice", "connections=1")))
	b.listen(testQual, 64)
	x := a.point(nil)
	x.dialAs(b, refusedAfter, k.publicOf("carol"), "")
	x.expect(EventTimedOut)
	a.joins(b)
	y := a.point(nil)
	y.dialAs(b, patience, k.publicOf("bob"), "")
	y.expect(EventNonPeerRejected)
	for _, want := range []string{"may be missing, expired or for another address", "connections= or bytes= of the line of this host may be the limit"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log says %q, want %q", log.String(), want)
		}
	}
}

// TestLogNamesTheAdapter: each line of secure mode says which adapter of the program it is about, as other lines do.
func TestLogNamesTheAdapter(t *testing.T) {
	t.Setenv("DATXDP_KEYLOG", filepath.Join(t.TempDir(), "keys"))
	k := newKeyring(t)
	var log syncBuffer
	o := k.options("bob", k.line("carol", ""))
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	n := newSim(t)
	a, b := newHost(t, n, 0, k.options("alice", "")), newHost(t, n, 1, o)
	b.listen(testQual, 64)
	x := a.point(nil)
	x.dialAs(b, refusedAfter, k.publicOf("bob"), "")
	x.expect(EventTimedOut)
	ok(t, b.ia.ReloadSecurity())
	text := log.await("keys and peers read again")
	for line := range strings.Lines(text) {
		if !strings.Contains(line, " ia=link ") || strings.Count(line, "ia=") != 1 {
			t.Errorf("no adapter in %q", line)
		}
	}
	for _, message := range []string{"DATXDP_KEYLOG is set", "handshake refused", "keys and peers read again", "dat: opened"} {
		if !strings.Contains(text, message) {
			t.Errorf("no line with %q in %q", message, text)
		}
	}
}

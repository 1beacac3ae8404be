package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// open opens the adapter of host i.
func open(t *testing.T, i int) *dat.IA {
	t.Helper()
	ia, err := dat.Open(fmt.Sprintf("udp:127.79.0.%d", i+1), dat.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ia.Close() })
	return ia
}

// cluster starts a server and n clients, each with its own adapter.
func cluster(t *testing.T, n int) []*client {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	server := open(t, 0)
	served := make(chan error)
	go func() { served <- serve(ctx, server) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Errorf("serve: %v", err)
		}
	})
	var clients []*client
	for i := range n {
		c, err := dial(ctx, open(t, i+1), netip.MustParseAddr("127.79.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	return clients
}

// TestClientsThatDoNothing: idle clients of one host get at most half of the places. Another host still gets a
// connection.
func TestClientsThatDoNothing(t *testing.T) {
	clients, at := cluster(t, 1), netip.MustParseAddr("127.79.0.1")
	idle := open(t, 3)
	for range maxClients / 2 {
		if _, err := dial(t.Context(), idle, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dial(t.Context(), idle, at); err == nil || !strings.Contains(err.Error(), "as many clients as it takes") {
		t.Errorf("one more than half of the places: %v", err)
	}
	if err := clients[0].put(t.Context(), "colour", "blue"); err != nil {
		t.Error(err)
	}
	late, err := dial(t.Context(), open(t, 4), at)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := late.get(t.Context(), "colour"); got != "blue" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAcceptFails: if a request cannot be accepted, its endpoint is freed.
func TestAcceptFails(t *testing.T) {
	ia := open(t, 0)
	pz, err1 := ia.CreatePZ()
	evd, err2 := ia.CreateEVD(8, nil, dat.EVDCR|dat.EVDConnection)
	psp, err3 := ia.CreatePSP(service, evd, dat.PSPConsumer)
	table, err4 := ia.CreateLMR(make([]byte, tableSize), pz, dat.MemAll)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	client, refused := open(t, 1), make(chan error)
	go func() {
		_, err := dial(t.Context(), client, netip.MustParseAddr("127.79.0.1"))
		refused <- err
	}()
	var ev dat.Event
	if _, err := evd.WaitContext(t.Context(), 1, &ev); err != nil {
		t.Fatal(err)
	}
	if err := ev.CR.Reject(nil); err != nil {
		t.Fatal(err)
	}
	s := server{ia: ia, pz: pz, evd: evd, table: table}
	if err := s.accept(ev.CR, netip.Addr{}); !errors.Is(err, dat.ErrInvalidHandle) {
		t.Errorf("accept after the request is over: %v", err)
	}
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("dial: %v", err)
	}
	if err := errors.Join(psp.Free(), evd.Free()); err != nil {
		t.Errorf("something still uses the dispatcher: %v", err)
	}
}

// TestTornReads: several clients put and get one key at the same time. Each get returns the complete value of one put,
// and never an older value than an earlier get of the same client.
func TestTornReads(t *testing.T) {
	const writers, readers, puts = 2, 2, 200
	clients := cluster(t, writers+readers)
	var writing, reading sync.WaitGroup
	over := make(chan struct{})
	for w, c := range clients[:writers] {
		writing.Go(func() {
			for n := range puts {
				// The value has the largest size that an entry allows, and all its bytes are equal.
				value := fmt.Sprintf("%d %05d %s", w, n, strings.Repeat(string(rune('a'+n%26)), 90))
				if err := c.put(t.Context(), "key", value); err != nil {
					t.Errorf("put %d: %v", n, err)
					return
				}
			}
		})
	}
	for _, c := range clients[writers:] {
		reading.Go(func() {
			last := [writers]int{}
			for done := false; !done; {
				select {
				case <-over:
					done = true
				default:
				}
				checkValue(t, c, &last)
			}
		})
	}
	writing.Wait()
	close(over)
	reading.Wait()
}

func checkValue(t *testing.T, c *client, last *[2]int) {
	value, err := c.get(t.Context(), "key")
	if errors.Is(err, errNoKey) {
		return
	}
	if err != nil {
		t.Errorf("get: %v", err)
		return
	}
	var w, n int
	var fill string
	if _, err := fmt.Sscanf(value, "%d %d %s", &w, &n, &fill); err != nil {
		t.Errorf("get: %q: %v", value, err)
		return
	}
	if n < last[w] || fill != strings.Repeat(string(rune('a'+n%26)), 90) {
		t.Errorf("get: torn or old: %q after %d", value, last[w])
	}
	last[w] = n
}

// rivals returns lists of n keys; the keys of a list have the same first entry.
func rivals(n, some int) (keys [][]string) {
	byHome := map[int][]string{}
	for k := 0; len(keys) < some; k++ {
		key := fmt.Sprint("key", k)
		h := home(key)
		if byHome[h] = append(byHome[h], key); len(byHome[h]) == n {
			keys = append(keys, byHome[h])
		}
	}
	return keys
}

// TestRivals: several clients put new keys with the same first entry at the same time. No value is lost.
func TestRivals(t *testing.T) {
	clients := cluster(t, 3)
	keys := rivals(len(clients), 50)
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			for _, k := range keys {
				if err := c.put(t.Context(), k[i], k[i]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, k := range keys {
		for i := range clients {
			if got, err := clients[0].get(t.Context(), k[i]); got != k[i] || err != nil {
				t.Errorf("%s is %q, %v", k[i], got, err)
			}
		}
	}
}

// TestDeadWriter: an entry that a client has locked but not written can be read, but not written.
func TestDeadWriter(t *testing.T) {
	c := cluster(t, 1)[0]
	c.patience = 50 * time.Millisecond
	if err := c.put(t.Context(), "key", "old"); err != nil {
		t.Fatal(err)
	}
	i, e, ok, err := c.find(t.Context(), "key")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if mine, err := c.swap(t.Context(), i, e.version(), e.version()+1); !mine || err != nil {
		t.Fatal(mine, err)
	}
	if got, err := c.get(t.Context(), "key"); got != "old" || err != nil {
		t.Errorf("get: %q, %v", got, err)
	}
	if err := c.put(t.Context(), "key", "new"); !errors.Is(err, errLocked) {
		t.Errorf("put: %v, want %v", err, errLocked)
	}
	// This writes only a part of the entry, so it is torn.
	entry(c.data[writeAt:][:entrySize]).fill("key", "new", e.version())
	copy(c.data[writeAt:], make([]byte, 8))
	if err := c.write(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	if got, err := c.get(t.Context(), "key"); !errors.Is(err, errLocked) {
		t.Errorf("get of a torn entry: %q, %v", got, err)
	}
}

// TestPrintable: a value with control characters is quoted, so that it cannot control the terminal.
func TestPrintable(t *testing.T) {
	for value, want := range map[string]string{"blue": "blue", "Grün 本": "Grün 本", "a\x1b]0;b\x07": `"a\x1b]0;b\a"`, "a\nb": `"a\nb"`, "\x9b31m": `"\x9b31m"`} {
		if got := printable(value); got != want {
			t.Errorf("%q is printed as %s, want %s", value, got, want)
		}
	}
}

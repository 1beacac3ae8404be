package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// TestSlowest: a receiver without any chunk counts as the slowest; a dropped receiver does not count.
func TestSlowest(t *testing.T) {
	has := func(chunks int) *receiver { return &receiver{written: chunks, credited: chunks} }
	out := &receiver{err: errors.New("left out")}
	for _, tt := range []struct {
		all  []*receiver
		want int
	}{{nil, 0}, {[]*receiver{out}, 0}, {[]*receiver{has(0), has(5)}, 0}, {[]*receiver{has(5), has(0)}, 0}, {[]*receiver{out, has(7), has(5)}, 5}} {
		if got := (&sender{all: tt.all}).slowest(); got != tt.want {
			t.Errorf("%d receivers: got %d, want %d", len(tt.all), got, tt.want)
		}
	}
}

// overwriter is a hash during whose computation the sender overwrites the chunk.
type overwriter struct {
	hash.Hash
	chunk []byte
}

func (o *overwriter) Write(p []byte) (int, error) {
	copy(o.chunk, "forged")
	return o.Hash.Write(p)
}

// TestStore: the file and the hash get the same bytes, even if the sender overwrites the chunk meanwhile.
func TestStore(t *testing.T) {
	chunk := []byte("honest")
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in := &incoming{file: file, hash: &overwriter{sha256.New(), chunk}}
	if err := in.store(chunk); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file.Name())
	if sum := sha256.Sum256(got); err != nil || !bytes.Equal(in.hash.Sum(nil), sum[:]) {
		t.Errorf("the file has %q, %v, and the hash is that of other bytes", got, err)
	}
}

// TestOffer: a file name with a path to another directory, and that of a hidden file, is refused.
func TestOffer(t *testing.T) {
	for _, name := range []string{"file", "file.iso", "Bücher und 本"} {
		got, size, err := parseOffer(offer(name, 1<<40))
		if got != name || size != 1<<40 || err != nil {
			t.Errorf("%q: got %q, %d, %v", name, got, size, err)
		}
	}
	for _, bad := range [][]byte{nil, offer("", 1), offer("a", -1), offer(".", 1), offer("..", 1), offer(".bashrc", 1), offer("/", 1),
		offer("../a", 1), offer("/etc/a", 1), offer("a/b", 1), offer("a/", 1),
		offer("a\x1b]0;b\x07", 1), offer("a\nb", 1), offer("a\u009bb", 1), offer("a\x9bb", 1), offer("a\u202eb", 1)} {
		if name, size, err := parseOffer(bad); err == nil {
			t.Errorf("%q is taken as %q of %d bytes", bad, name, size)
		}
	}
}

// TestSenderLeaves: when a sender disconnects during its file, or before it, other senders can still send.
func TestSenderLeaves(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), netip.MustParseAddr("127.81.0.1")
	receives(t, at, dir, time.Minute)
	sender := open(t, "127.81.0.2")
	ep, evd := offerTo(t, sender, at)
	if err := ep.Disconnect(dat.CloseAbrupt); err != nil {
		t.Fatal(err)
	}
	await(t, evd, dat.EventDisconnected)
	sends(t, sender, dir, []byte("content"), at)
}

// TestSilentSender: while one sender is connected and silent, other senders can send.
func TestSilentSender(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), netip.MustParseAddr("127.81.9.1")
	receives(t, at, dir, time.Minute)
	offerTo(t, open(t, "127.81.9.2"), at)
	sends(t, open(t, "127.81.9.3"), dir, []byte("content"), at)
}

// TestSenderStandsStill: a silent sender is given up, and the file of the next sender arrives.
func TestSenderStandsStill(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), netip.MustParseAddr("127.81.1.1")
	receives(t, at, dir, 2*time.Second)
	sender := open(t, "127.81.1.2")
	_, evd := offerTo(t, sender, at)
	await(t, evd, dat.EventDisconnected)
	sends(t, sender, dir, []byte("content"), at)
}

// TestReceiverStandsStill: a receiver that accepts the connection and then stops receiving is dropped, and the error
// names it. The other receiver gets the file. The receiver may stop while the window is full or at the end of the file.
func TestReceiverStandsStill(t *testing.T) {
	for i, size := range []int{0, 1, window * chunkSize, (window + 2) * chunkSize} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			t.Parallel()
			addr := func(host int) netip.Addr { return netip.AddrFrom4([4]byte{127, 81, byte(2 + i), byte(host)}) }
			dir, good, still := t.TempDir(), addr(1), addr(2)
			receives(t, good, dir, time.Minute)
			accepts(t, still)
			file, content := filepath.Join(t.TempDir(), "file"), bytes.Repeat([]byte{7}, size)
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			err := send(t.Context(), open(t, addr(3).String()), file, []string{still.String(), good.String()}, 3*time.Second)
			if want := still.String() + " does not have the file: it has done nothing for 3s"; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "file")); !bytes.Equal(got, content) {
				t.Errorf("received %d bytes of %d, %v", len(got), size, err)
			}
		})
	}
}

func open(t *testing.T, addr string) *dat.IA {
	t.Helper()
	ia, err := dat.Open("udp:"+addr, dat.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ia.Close() })
	return ia
}

// receives runs a receiver until the end of the test.
func receives(t *testing.T, at netip.Addr, dir string, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ia, done := open(t, at.String()), make(chan error)
	go func() { done <- receive(ctx, ia, dir, patience) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// accepts runs a receiver that accepts one sender and then does nothing.
func accepts(t *testing.T, at netip.Addr) {
	t.Helper()
	ia, dir := open(t, at.String()), t.TempDir()
	pz, err1 := ia.CreatePZ()
	requests, err2 := ia.CreateEVD(8, nil, dat.EVDCR)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if _, err := ia.CreatePSP(service, requests, dat.PSPConsumer); err != nil {
		t.Fatal(err)
	}
	go func() {
		var ev dat.Event
		if _, err := requests.WaitContext(t.Context(), 1, &ev); err != nil {
			t.Error(err)
		} else if _, err := accept(ia, pz, dir, ev.CR); err != nil {
			t.Error(err)
		}
	}()
}

// sends sends a file to one receiver and checks that it has arrived.
func sends(t *testing.T, ia *dat.IA, dir string, content []byte, to netip.Addr) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), ia, file, []string{to.String()}, time.Minute); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "file")); !bytes.Equal(got, content) {
		t.Errorf("received %q, %v", got, err)
	}
}

// offerTo connects as a sender does. The receiver must accept.
func offerTo(t *testing.T, ia *dat.IA, to netip.Addr) (*dat.EP, *dat.EVD) {
	t.Helper()
	pz, err1 := ia.CreatePZ()
	evd, err2 := ia.CreateEVD(8, nil, dat.EVDConnection|dat.EVDDTO)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	ep, err := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
	if err == nil {
		err = ep.Connect(to, service, 10*time.Second, offer("other", 1<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	await(t, evd, dat.EventEstablished)
	return ep, evd
}

func await(t *testing.T, evd *dat.EVD, want dat.EventNumber) {
	t.Helper()
	var ev dat.Event
	if _, err := evd.WaitContext(t.Context(), 1, &ev); err != nil || ev.Number != want {
		t.Fatalf("event %v, %v, want %v", ev.Number, err, want)
	}
}

package stream

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// onlyReader and onlyWriter hide all other methods, so that io.Copy uses those of the stream.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// TestCopy: io.Copy into a stream, from stream to stream, and out of a stream keeps every byte.
func TestCopy(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		x, relay := newPair(t, a, b)
		next, y := newPair(t, b, a)
		const size = 5 << 20
		sent := sha256.New()
		done := make(chan error, 2)
		go func() {
			source := io.LimitReader(rand.NewChaCha8([32]byte{}), size)
			n, err := io.Copy(x, onlyReader{io.TeeReader(source, sent)})
			if n != size {
				t.Errorf("ReadFrom: %d bytes", n)
			}
			done <- errors.Join(err, x.CloseWrite())
		}()
		go func() {
			_, err := io.Copy(next, relay)
			done <- errors.Join(err, next.CloseWrite())
		}()
		received := sha256.New()
		if n, err := io.Copy(onlyWriter{received}, y); n != size || err != nil {
			t.Errorf("WriteTo: %d bytes, %v", n, err)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
			t.Error("the received bytes differ from the sent ones")
		}
	})
}

// TestCopyUnaligned: readers that return few bytes and writers that take few keep every byte, also through bufio.
func TestCopyUnaligned(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	want := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(want)
	done := make(chan error)
	go func() {
		w := bufio.NewWriterSize(x, 100)
		_, err := w.ReadFrom(onlyReader{&slow{bytes.NewReader(want), 777}})
		done <- errors.Join(err, w.Flush(), x.CloseWrite())
	}()
	var got bytes.Buffer
	if _, err := io.Copy(onlyWriter{&got}, bufio.NewReaderSize(y, 50)); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes of %d, %v", got.Len(), len(want), err)
	}
}

// slow returns at most n bytes in a call.
type slow struct {
	io.Reader
	n int
}

func (s *slow) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), s.n)]) }

// TestCopyFails: an error of the reader or the writer ends the copy, with the number of bytes until then. Bytes that the
// writer has not taken are lost, as those of a TCP connection are.
func TestCopyFails(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	if n, err := x.ReadFrom(io.MultiReader(bytes.NewReader([]byte("abcdef")), &failing{})); n != 6 || !errors.Is(err, errFailing) {
		t.Errorf("ReadFrom: %d, %v", n, err)
	}
	got := make([]byte, 2)
	if _, err := io.ReadFull(y, got); err != nil {
		t.Fatal(err)
	}
	if n, err := y.WriteTo(&failing{take: 3}); n != 3 || !errors.Is(err, errFailing) {
		t.Errorf("WriteTo: %d, %v", n, err)
	}
	write(t, x, "g")
	if _, err := io.ReadFull(y, got[:1]); err != nil || got[0] != 'g' {
		t.Errorf("read %q, %v", got[:1], err)
	}
}

var errFailing = errors.New("it fails")

type failing struct{ take int }

func (f *failing) Read([]byte) (int, error)    { return 0, errFailing }
func (f *failing) Write(p []byte) (int, error) { return f.take, errFailing }

// TestCloseDuringCopy: Close does not wait for the writer of a WriteTo or the reader of a ReadFrom. When they return,
// the copy ends with net.ErrClosed.
func TestCloseDuringCopy(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	write(t, x, "something")
	in, out := newGate(), newGate()
	ended := make(chan error, 2)
	go func() {
		_, err := y.WriteTo(in)
		ended <- err
	}()
	go func() {
		_, err := y.ReadFrom(out)
		ended <- err
	}()
	<-in.entered
	<-out.entered
	if err := errors.Join(y.SetLinger(0), y.Close()); err != nil {
		t.Error(err)
	}
	close(in.leave)
	close(out.leave)
	for range 2 {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("copy: %v", err)
		}
	}
}

// gate is a reader and writer whose first call waits.
type gate struct{ entered, leave chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 8), make(chan struct{})} }

func (g *gate) Read(p []byte) (int, error) { return g.Write(p) }

func (g *gate) Write(p []byte) (int, error) {
	g.entered <- struct{}{}
	<-g.leave
	return len(p), nil
}

// TestBesideCopy: while a WriteTo waits for its writer and a ReadFrom for its reader, Read and Write of the same stream
// move bytes, and return at their deadline and at Close.
func TestBesideCopy(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		x, y := newPair(t, a, b)
		in, out := newGate(), newGate()
		var copies sync.WaitGroup
		defer copies.Wait()
		defer close(in.leave)
		defer close(out.leave)
		write(t, x, "taken by the writer")
		copies.Go(func() { _, _ = y.WriteTo(in) })
		copies.Go(func() { _, _ = y.ReadFrom(out) })
		<-in.entered
		<-out.entered
		const size = 3 << 20 // more than the rings have room for
		transfer(t, x, y, size)
		transfer(t, y, x, size)
		calls := map[string]func() error{
			"Read":  func() error { _, err := y.Read(make([]byte, 1)); return err },
			"Write": func() error { return fill(y) },
		}
		check(t, y.SetDeadline(time.Now().Add(20*time.Millisecond)))
		for name, call := range calls {
			if err := soon(t, name, call); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s after its deadline: %v", name, err)
			}
		}
		check(t, y.SetDeadline(time.Time{}))
		ended := make(chan error, len(calls))
		for _, call := range calls {
			go func() { ended <- call() }()
		}
		for blocked := false; !blocked; runtime.Gosched() {
			y.mu.Lock()
			blocked = y.read.blocked && y.write.blocked
			y.mu.Unlock()
		}
		check(t, y.SetLinger(0))
		if err := soon(t, "Close", y.Close); err != nil {
			t.Error(err)
		}
		for range calls {
			if err := soon(t, "a call after Close", func() error { return <-ended }); !errors.Is(err, net.ErrClosed) {
				t.Errorf("blocked at Close: %v", err)
			}
		}
	})
}

// transfer sends zeros from x to y.
func transfer(t *testing.T, x, y *Conn, size int) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := x.Write(make([]byte, size))
		done <- err
	}()
	if _, err := io.ReadFull(y, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// soon returns the result of a call that must not block.
func soon(t *testing.T, name string, call func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("%s blocks", name)
		return nil
	}
}

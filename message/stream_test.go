package message

import (
	"bytes"
	"net"
	"testing"

	"github.com/datxdp/datxdp/stream"
)

// overStream returns the two ends of a stream over loopback.
func overStream(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := stream.Listen(t.Context(), "udp:127.91.0.1", 7000)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted := make(chan error, 1)
	go func() {
		var err error
		b, err = l.Accept()
		accepted <- err
	}()
	if a, err = stream.Dial(t.Context(), "udp:127.91.0.2", "127.91.0.1:7000"); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// Over a stream, a message that is contiguous in the ring must not be copied: it comes from the source itself.
func TestRecvInPlace(t *testing.T) {
	a, b := overStream(t)
	from, to := New(a), New(b)
	if _, ok := to.in.src.(*stream.Conn); !ok {
		t.Fatalf("the source is a %T", to.in.src)
	}
	for i := range 200 { // several times around the ring
		want := bytes.Repeat([]byte{byte(i)}, 1000+i)
		if err := from.Send(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		view, err := b.(*stream.Conn).Peek()
		if err != nil {
			t.Fatal(err)
		}
		whole := len(view) >= headerSize+len(want)
		got, err := to.Recv(t.Context())
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("message %d: %d bytes, %v", i, len(got), err)
		}
		if inPlace := &got[0] == &view[min(headerSize, len(view)-1)]; whole && !inPlace {
			t.Errorf("message %d was copied", i)
		}
		to.in.release()
	}
}

package libraries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"github.com/xtaci/smux"

	"github.com/datxdp/datxdp/examples/services/transport"
)

// session is one end of a connection that a library has divided into channels.
type session interface {
	Open() (io.ReadWriteCloser, error)   // opens a channel to the peer
	Accept() (io.ReadWriteCloser, error) // waits for a channel of the peer
	Close() error
}

// libraries make the sessions of both ends. Some wait for the handshake with the other end.
var libraries = map[string]struct {
	channels       int // at a time
	client, server func(net.Conn) (session, error)
}{
	// If a channel of SSH ends while others have filled its queue during a change of keys, the session hangs in version
	// 0.58, over TCP too.
	"ssh": {1, sshClient, sshServer},
	"smux": {
		8,
		func(c net.Conn) (session, error) { s, err := smux.Client(c, nil); return smuxSession{s}, err },
		func(c net.Conn) (session, error) { s, err := smux.Server(c, nil); return smuxSession{s}, err },
	},
	"yamux": {
		8,
		func(c net.Conn) (session, error) { s, err := yamux.Client(c, nil); return yamuxSession{s}, err },
		func(c net.Conn) (session, error) { s, err := yamux.Server(c, nil); return yamuxSession{s}, err },
	},
}

type smuxSession struct{ *smux.Session }

func (s smuxSession) Open() (io.ReadWriteCloser, error)   { return s.OpenStream() }
func (s smuxSession) Accept() (io.ReadWriteCloser, error) { return s.AcceptStream() }

type yamuxSession struct{ *yamux.Session }

func (s yamuxSession) Open() (io.ReadWriteCloser, error)   { return s.OpenStream() }
func (s yamuxSession) Accept() (io.ReadWriteCloser, error) { return s.AcceptStream() }

const volume = 2 << 20 // bytes of a channel in each direction

// TestLibraries: the channels of a session echo what they get. A session notices that the other end has closed.
func TestLibraries(t *testing.T) {
	for name, l := range libraries {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			served := make(chan error, 1)
			go func() { served <- serve(l.server, b) }()
			s, err := l.client(a)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for i := range l.channels {
				all.Go(func() {
					if err := echoes(s, byte(i)); err != nil {
						t.Errorf("channel %d: %v", i, err)
					}
				})
			}
			all.Wait()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := <-served; err == nil {
				t.Error("the server has not noticed the end")
			}
		})
	}
}

// pair returns a connection. As libraries may, it dials before it accepts.
func pair(t *testing.T) (client, server net.Conn) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := (&transport.Transport{Adapter: "udp:127.95.0.1"}).Listen(ctx, 7000)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = (&transport.Transport{Adapter: "udp:127.95.0.2"}).DialContext(ctx, "tcp", "127.95.0.1:7000")
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() }) // the session has closed them
	return client, server
}

// serve echoes the bytes of each channel until the session ends.
func serve(begin func(net.Conn) (session, error), c net.Conn) error {
	defer c.Close()
	s, err := begin(c)
	if err != nil {
		return err
	}
	defer s.Close()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		ch, err := s.Accept()
		if err != nil {
			return err
		}
		all.Go(func() {
			_, _ = io.Copy(ch, ch) // the client compares
			_ = ch.Close()
		})
	}
}

// echoes sends bytes through a new channel, and compares what comes back.
func echoes(s session, seed byte) error {
	ch, err := s.Open()
	if err != nil {
		return err
	}
	sent := make([]byte, volume)
	for i := range sent {
		sent[i] = seed + byte(i>>8) ^ byte(i)
	}
	written := make(chan error, 1)
	go func() {
		_, err := ch.Write(sent)
		written <- err
	}()
	got := make([]byte, volume)
	if _, err = io.ReadFull(ch, got); err == nil && string(got) != string(sent) {
		err = fmt.Errorf("other bytes have come back")
	}
	return errors.Join(err, <-written, ch.Close())
}

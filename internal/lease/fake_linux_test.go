package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fakeKernel makes leases of pipes in place of AF_XDP sockets. It outlives the servers of a test, as the kernel does.
type fakeKernel struct {
	mu      sync.Mutex
	next    uint32
	leases  map[uint32]Held
	listens map[uint64]uint32
	dead    map[uint32]bool // leases whose holders have ended
	adopted map[uint32]bool
	sockets int
	busy    chan struct{} // if not nil, Lease waits for it
	fails   error         // of Lease
	idle    time.Duration // of the servers, in place of idleLimit
}

func newFake() *fakeKernel {
	return &fakeKernel{leases: make(map[uint32]Held), listens: make(map[uint64]uint32), dead: make(map[uint32]bool),
		adopted: make(map[uint32]bool), sockets: 1, idle: idleLimit}
}

// makes sets what Lease waits for and which error it returns.
func (k *fakeKernel) makes(busy chan struct{}, fails error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busy, k.fails = busy, fails
}

func (k *fakeKernel) Check(context.Context, string, Mode) error { return nil }

func (k *fakeKernel) Lease(ctx context.Context, r Request, h Holder, l Limits) (*Grant, error) {
	k.mu.Lock()
	busy, fails := k.busy, k.fails
	k.mu.Unlock()
	if busy != nil {
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if fails != nil {
		return nil, fails
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	g := k.grant(k.next, r)
	for range k.sockets {
		a, b, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		g.Sockets, g.UMEMs = append(g.Sockets, a), append(g.UMEMs, b)
	}
	k.leases[g.ID] = Held{ID: g.ID, Interface: r.Interface, Mode: r.Mode, Holder: h, Bytes: r.bytes(k.sockets), Since: time.Now()}
	k.adopted[g.ID] = true
	return g, nil
}

func (k *fakeKernel) grant(id uint32, r Request) *Grant {
	return &Grant{ID: id, Interface: r.Interface, Ifindex: 3, Mode: r.Mode, Attach: "copy", MTU: 1500, MAC: [6]byte{2, 0, 0, 0, 0, 1},
		Addr: netip.MustParseAddr("192.0.2.1"), Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("2001:db8::1/64")},
		Port: 17473, Ports: []uint16{40000, 40001}, FirstEngine: id * 2, Engines: r.Engines, Frames: r.Frames,
		FrameSize: r.FrameSize, Memory: r.Memory, Rings: r.Rings, MultiBuffer: true}
}

func (k *fakeKernel) Adopt(_ context.Context, id uint32, h Holder) (*Grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	held, ok := k.leases[id]
	if !ok || held.Holder != h {
		return nil, ErrNoLease
	}
	k.adopted[id] = true
	return k.grant(id, Request{Interface: held.Interface, Mode: held.Mode}), nil
}

func (k *fakeKernel) Release(id uint32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.leases, id)
	for q, owner := range k.listens {
		if owner == id {
			delete(k.listens, q)
		}
	}
	return nil
}

func (k *fakeKernel) Listen(id uint32, q uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if owner, ok := k.listens[q]; ok && owner != id {
		return fmt.Errorf("%w: lease %d", ErrTaken, owner)
	}
	k.listens[q] = id
	return nil
}

func (k *fakeKernel) Unlisten(id uint32, q uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.listens[q] == id {
		delete(k.listens, q)
	}
}

func (k *fakeKernel) Route(_ uint32, to netip.Addr) (Route, error) {
	if !to.Is4() {
		return Route{}, ErrNoRoute
	}
	return Route{netip.MustParseAddr("192.0.2.1"), 1400}, nil
}

func (k *fakeKernel) Sweep() (alive []Held, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, h := range k.leases {
		if k.dead[id] {
			delete(k.leases, id)
		} else if !k.adopted[id] {
			alive = append(alive, h)
		}
	}
	return alive, nil
}

func (k *fakeKernel) Close() error { return nil }

func (k *fakeKernel) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.leases)
}

// daemon is a server that runs.
type daemon struct {
	*Server
	path string
	stop func()
}

// start runs a server of eth0 at a path until stop or the end of the test.
func start(t *testing.T, k *fakeKernel, path, policy string) *daemon {
	t.Helper()
	p, err := ParsePolicy("policy", []byte(policy))
	check(t, err)
	k.mu.Lock()
	clear(k.adopted) // a new daemon has adopted nothing
	k.mu.Unlock()
	s, err := NewServer(k, []string{"eth0", "eth1"}, p, slog.New(slog.NewTextHandler(&testLog{t: t}, nil)))
	check(t, err)
	s.idle = k.idle
	l, err := Listen(path)
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return &daemon{s, path, stop}
}

type testLog struct{ t *testing.T }

func (l *testLog) Write(b []byte) (int, error) {
	if testing.Verbose() {
		fmt.Printf("%s", bytes.TrimPrefix(b, []byte("time=")))
	}
	return len(b), nil
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "s") }

// mine is a policy that allows this process much.
func mine() string { return fmt.Sprintf("user:%d mode=shared,direct leases=4\n", os.Getuid()) }

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(path)
	check(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func borrow(t *testing.T, c *Client) *Grant {
	t.Helper()
	g, err := c.Lease(Request{Interface: "eth0", Mode: Shared})
	check(t, err)
	t.Cleanup(g.Close)
	return g
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after 20 s", what)
		}
	}
}

// rawDial connects without a Client.
func rawDial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	check(t, err)
	t.Cleanup(func() { c.Close() })
	check(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

// ended waits until the server has closed a connection.
func ended(t *testing.T, c *net.UnixConn) {
	t.Helper()
	for {
		if n, err := c.Read(make([]byte, maxMessage)); n == 0 || err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection is still open")
			}
			return
		}
	}
}

func sameFile(t *testing.T, a, b *os.File) bool {
	t.Helper()
	var x, y syscall.Stat_t
	check(t, syscall.Fstat(int(a.Fd()), &x))
	check(t, syscall.Fstat(int(b.Fd()), &y))
	return x.Ino == y.Ino && x.Dev == y.Dev
}

package stream

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// listenGrace is dat.Limits.ListenGrace of adapters that this package opens: a port at which nobody listens is refused
// at once, as with TCP. It is shorter than the time after which a connection request is repeated.
const listenGrace = time.Millisecond

// stack is an open adapter with its streams and listeners, its users. After the last one, the stack closes the adapter, or
// keeps it open for the next dial.
type stack struct {
	key     adapter // in stacks
	ia      *dat.IA
	own     bool  // close ia with the stack
	memory  quota // of the bytes by which rings grow
	orphans orphans

	users    int  // guarded by opening, as are the fields below
	listened bool // the adapter has had a listener
	drained  bool // Drain was called while the adapter was in use
	closed   bool
	unused   *time.Timer // runs while the adapter is kept open; nil before

	mu sync.Mutex
	idling
}

// adapter says which adapter is used.
type adapter struct {
	name      string
	namespace string // in which the name has its meaning; use sets it
	security  dat.Security
	ia        *dat.IA // of the caller, in place of the others; nil otherwise
}

// namespace returns the network namespace of the calling thread, or "" if the system has none. It takes about 3 µs.
func namespace() string {
	ns, _ := os.Readlink("/proc/thread-self/ns/net") // fails on other systems than Linux
	return ns
}

// stacks has the adapters in use.
var (
	opening sync.Mutex
	stacks  = map[adapter]*stack{}
)

// use returns the stack of an adapter, for one more user. It opens the adapter, unless the caller has. A name is one of the
// network namespace of the calling thread: other namespaces have other interfaces and addresses.
func use(key adapter) (*stack, error) {
	if key.ia != nil {
		key = adapter{ia: key.ia}
	} else {
		key.namespace = namespace()
	}
	opening.Lock()
	defer opening.Unlock()
	if s := stacks[key]; s != nil && s.ia.Err() == nil { // a user of an adapter that has ended may not have noticed
		s.users++
		return s, nil
	}
	s := newStack(key)
	err := s.open()
	if err != nil && closeUnused() { // the device may be open with other options
		err = s.open()
	}
	if err != nil {
		return nil, err
	}
	stacks[key] = s
	return s, nil
}

// newStack returns a stack with one user.
func newStack(key adapter) *stack {
	return &stack{key: key, ia: key.ia, users: 1, memory: memoryQuota(),
		orphans: orphans{quota: quota{limit: maxOrphans, address: memoryShare, network: memoryNetwork}},
		idling:  idling{untidy: map[*Conn]struct{}{}, interval: tidyInterval}}
}

// open opens the adapter, unless the caller has.
func (s *stack) open() (err error) {
	if s.ia != nil {
		return nil
	}
	o := dat.DefaultOptions()
	o.AsyncQLen = dat.NoAsyncEVD
	o.Limits.ListenGrace = listenGrace
	o.Security = s.key.security
	s.ia, err = dat.Open(s.key.name, o)
	s.own = err == nil
	return err
}

// reachable returns an error if no client finds the adapter unless it is told the UDP port: the system has picked one,
// because another process has the default port.
func (s *stack) reachable() error {
	p, err := s.ia.Query()
	switch {
	case err != nil:
		return err
	case !s.own || !p.PortPicked:
		return nil
	}
	return failed(syscall.EADDRINUSE, "another process has UDP port %d of %v, where clients look for this service: "+
		"choose another port N of 1 to 65535 and write %q, and %q behind the name of each client's adapter",
		dat.DefaultPort, p.Address, s.key.name+" port=N", "peerport=N")
}

// listens notes that the adapter has a listener.
func (s *stack) listens() {
	opening.Lock()
	defer opening.Unlock()
	s.listened = true
}

// another counts one more user of a stack that is in use.
func (s *stack) another() {
	opening.Lock()
	defer opening.Unlock()
	s.users++
}

// release ends the use by one user.
func (s *stack) release() {
	opening.Lock()
	defer opening.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	if s.own && !s.listened && !s.drained && s.ia.Err() == nil {
		s.keep()
		return
	}
	s.close()
}

// keep lets the adapter open for the next dial. An adapter that has had a listener is not kept: another process may be about
// to listen in place of this one. opening is held.
func (s *stack) keep() {
	if s.unused == nil {
		s.unused = time.AfterFunc(unusedTime, s.expire)
	} else {
		s.unused.Reset(unusedTime)
	}
}

// expire closes an adapter that no dial has used.
func (s *stack) expire() {
	opening.Lock()
	defer opening.Unlock()
	if s.users == 0 {
		s.close()
	}
}

// close closes the adapter, unless it is that of the caller. opening is held.
func (s *stack) close() {
	if s.closed {
		return
	}
	s.closed = true
	if stacks[s.key] == s {
		delete(stacks, s.key)
	}
	if s.unused != nil {
		s.unused.Stop()
	}
	s.rest()
	if s.own {
		_ = s.ia.Close()
	}
}

// closeUnused closes the adapters that are kept open, and reports whether there were any. opening is held.
func closeUnused() (any bool) {
	for _, s := range stacks {
		if s.users == 0 {
			s.close()
			any = true
		}
	}
	return any
}

// appendTo appends the streams of a set, which mu guards.
func (s *stack) appendTo(all []*Conn, set map[*Conn]struct{}) []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range set {
		all = append(all, c)
	}
	return all
}

// forget removes a stream that ends from the set of the stack.
func (s *stack) forget(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.untidy, c)
}

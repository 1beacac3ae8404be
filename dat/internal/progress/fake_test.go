package progress

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// pollTime is the virtual time that a poll of a fake engine takes.
const pollTime = 100 * time.Nanosecond

// fake is an engine and its link in virtual time. Packets and deadlines are what a test says.
type fake struct {
	Driver
	group Group
	token wire.Token

	packets atomic.Int32 // packets for the next polls, one for each poll
	next    atomic.Int64 // the deadline, a wire.Time
	rings   atomic.Int32
	conns   atomic.Int32 // connections
	due     bool         // the first result of Kick
	active  bool         // the second result of Kick
	took    [Closed + 1]atomic.Int32
	last    [Closed + 1]atomic.Int64 // wire.Time of the last poll in a role
	closed  bool

	woken  chan struct{}
	wakes  atomic.Int32 // calls of Wake
	before func()       // called before Wait sleeps
}

// inVirtualTime runs f, with a clock that begins now.
func inVirtualTime(t *testing.T, f func(t *testing.T)) {
	defer func(was time.Time) { started = was }(started)
	synctest.Test(t, func(t *testing.T) {
		started = time.Now()
		f(t)
	})
}

// virtual runs f with a fake whose background owner runs, in virtual time.
func virtual(t *testing.T, f func(t *testing.T, x *fake)) {
	inVirtualTime(t, func(t *testing.T) {
		x := newFake()
		x.group.Start()
		defer x.group.Close()
		f(t, x)
		x.settle()
	})
}

func newFake() *fake {
	x := &fake{woken: make(chan struct{}, 1), before: func() {}}
	x.next.Store(int64(Forever))
	x.Init(x, &x.token, x)
	x.group.Add(&x.Driver)
	return x
}

func (x *fake) Poll(now wire.Time) bool {
	role := x.token.Role()
	x.took[role].Add(1)
	x.last[role].Store(int64(now))
	if role != Poster { // while a Poster owns the engine, the background owner spins, and virtual time stands still
		time.Sleep(pollTime)
	}
	if x.next.Load() <= int64(now) {
		x.next.Store(int64(Forever))
	}
	if x.packets.Load() == 0 {
		return false
	}
	x.packets.Add(-1)
	return true
}

func (x *fake) Next() wire.Time                     { return wire.Time(x.next.Load()) }
func (x *fake) Kick(*wire.Conn) (poll, active bool) { return x.due, x.active }
func (x *fake) Ring(*wire.Conn)                     { x.rings.Add(1) }
func (x *fake) Connections() int                    { return int(x.conns.Load()) }
func (x *fake) Close()                              { x.closed = true }
func (x *fake) Wake()                               { x.wakes.Add(1); x.rouse() }
func (x *fake) polls(r wire.Role) int               { return int(x.took[r].Load()) }

// rouse ends Wait, as a packet or Wake does.
func (x *fake) rouse() {
	select {
	case x.woken <- struct{}{}:
	default:
	}
}

// arrive simulates the arrival of a packet.
func (x *fake) arrive() {
	x.packets.Add(1)
	x.rouse()
}

// Wait implements Link.
func (x *fake) Wait(d time.Duration) {
	x.before()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-x.woken:
	case <-timer.C:
	}
}

// settle waits until the background owner sleeps and no call is in progress.
func (x *fake) settle() {
	for synctest.Wait(); x.Phase() != Sleeping || x.token.Role() != Nobody; synctest.Wait() {
		time.Sleep(pollTime)
	}
}

// event is a Waiting that a test makes ready.
type event struct {
	ready  atomic.Bool
	signal Signal
	armed  atomic.Int32 // number of calls of Arm(true)
}

func newEvent() *event { return &event{signal: NewSignal()} }

func (e *event) Ready() bool    { return e.ready.Load() }
func (e *event) Signal() Signal { return e.signal }
func (e *event) Arm(on bool) {
	if on {
		e.armed.Add(1)
	}
}

func (e *event) happen() {
	e.ready.Store(true)
	e.signal.Raise()
}

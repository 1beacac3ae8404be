package progress

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// armed is a Waiting whose signal is raised only if it is armed, as that of an EVD is.
type armed struct {
	ready, on atomic.Bool
	signal    Signal
}

func (a *armed) Ready() bool    { return a.ready.Load() }
func (a *armed) Arm(on bool)    { a.on.Store(on) }
func (a *armed) Signal() Signal { return a.signal }

func (a *armed) happen() {
	a.ready.Store(true)
	if a.on.Load() {
		a.signal.Raise()
	}
}

// inbox is an engine and its link in real time. A packet or a deadline is the event of the waiter.
type inbox struct {
	Driver
	group Group
	token wire.Token

	event   armed
	packets atomic.Int32
	next    wire.Time // guarded by the token
	woken   chan struct{}
}

func newInbox(m Mode) *inbox {
	x := &inbox{next: Forever, woken: make(chan struct{}, 1)}
	x.event.signal = NewSignal()
	x.group.Mode = m
	x.Init(x, &x.token, x)
	x.group.Add(&x.Driver)
	return x
}

func (x *inbox) Poll(now wire.Time) bool {
	busy := x.packets.Swap(0) > 0
	if x.next <= now {
		x.next, busy = Forever, true
	}
	if busy {
		x.event.happen()
	}
	return busy
}

func (x *inbox) Next() wire.Time                     { return x.next }
func (x *inbox) Kick(*wire.Conn) (poll, active bool) { return false, true }
func (x *inbox) Ring(*wire.Conn)                     {}
func (x *inbox) Connections() int                    { return 0 }
func (x *inbox) Close()                              {}

func (x *inbox) Wake() {
	select {
	case x.woken <- struct{}{}:
	default:
	}
}

func (x *inbox) Wait(d time.Duration) {
	for end := Now().Add(d); d < time.Millisecond; runtime.Gosched() { // timers of the runtime may be a millisecond late
		if received(x.woken) || Now() >= end {
			return
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-x.woken:
	case <-timer.C:
	}
}

// TestSleepsAndWakes: a waiter sleeps many times, and each time one cause ends its sleep: a packet, a deadline that a
// call sets, an event of another goroutine, or the end of its context. No wake-up is lost. DATXDP_SLEEPS is the number of
// sleeps for each mode; run a million with the race detector beside busy loops.
func TestSleepsAndWakes(t *testing.T) {
	sleeps := uint64(3_000)
	if n, err := strconv.ParseUint(os.Getenv("DATXDP_SLEEPS"), 10, 64); err == nil {
		sleeps = n
	}
	for name, m := range map[string]Mode{"adaptive": Adaptive, "interrupts": Interrupts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sleepAndWake(t, m, sleeps)
		})
	}
}

func sleepAndWake(t *testing.T, m Mode, sleeps uint64) {
	x := newInbox(m)
	x.group.Start()
	causes := []func(done chan<- struct{}){
		func(chan<- struct{}) { x.packets.Add(1); x.Wake() },
		func(chan<- struct{}) { x.Do(func() { x.next = Now().Add(20 * time.Microsecond) }) },
		func(chan<- struct{}) { x.event.happen() },
		func(done chan<- struct{}) { close(done) },
	}
	type sleep struct {
		cause int
		delay time.Duration
		done  chan struct{}
	}
	begun := make(chan sleep)
	var other sync.WaitGroup
	other.Go(func() {
		for s := range begun {
			for start := Now(); Now().Sub(start) < s.delay; { // the waiter polls, parks or sleeps meanwhile
			}
			causes[s.cause](s.done)
		}
	})
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; x.group.Parked() < sleeps; i++ {
		s := sleep{i % len(causes), time.Duration(r.IntN(int(2 * time.Microsecond))), make(chan struct{})}
		if m == Adaptive && i%16 < len(causes) {
			s.delay += waitSpin
		}
		begun <- s
		want := Ready
		if s.cause == 3 {
			want = Interrupted
		}
		limit := Until(20 * time.Second)
		if got := x.group.Wait(&x.event, limit, s.done); got != want || Now() >= limit { // a lost wake-up lasts until the limit
			t.Fatalf("wait %d, cause %d: outcome %d, want %d", i, s.cause, got, want)
		}
		x.event.ready.Store(false)
	}
	close(begun)
	other.Wait()
	x.group.Close()
}

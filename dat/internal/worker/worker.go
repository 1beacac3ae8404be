package worker

import (
	"runtime"
	"sync"
	"time"

	"github.com/datxdp/datxdp/internal/park"
	"github.com/datxdp/datxdp/wire"
)

// maxOwn is the number of other jobs that may wait: those of this host, and answers to authenticated requesters. They
// take some half a second.
const maxOwn = 4096

// Worker is a wire.Runner.
type Worker struct {
	wake chan struct{} // Submit and Close send to it; it holds one token
	done chan struct{} // run closes it when it ends
	half bool          // spend at most half of the time on strangers
	do   func(*wire.Job)

	mu        sync.Mutex // guards the fields below
	own       []*wire.Job
	strangers queue
	ownFirst  bool // the next turn is that of own
	resting   bool // the jobs of strangers wait until the rest is over
	closed    bool
}

var _ wire.Runner = (*Worker)(nil)

// New starts a worker. On a host with at most two processors, it spends at most half of the time of one on strangers.
func New() *Worker { return start((*wire.Job).Do) }

// start is New. The worker calls do for each job.
func start(do func(*wire.Job)) *Worker {
	w := &Worker{wake: make(chan struct{}, 1), done: make(chan struct{}), half: runtime.GOMAXPROCS(0) <= 2, do: do}
	go w.run()
	return w
}

// Submit implements wire.Runner.
func (w *Worker) Submit(j *wire.Job) bool {
	w.mu.Lock()
	room, wake := !w.closed, true
	switch {
	case !room:
	case j.From.IsValid():
		room, wake = w.strangers.push(j), !w.resting
	case len(w.own) >= maxOwn:
		room = false
	default:
		w.own = append(w.own, j)
	}
	w.mu.Unlock()
	if room && wake {
		w.raise()
	}
	return room
}

// Close ends the worker, and waits for it. It drops the jobs of strangers, which have no secrets yet, and computes the
// others. Afterwards Submit returns false.
func (w *Worker) Close() {
	w.mu.Lock()
	w.closed, w.strangers = true, queue{}
	w.mu.Unlock()
	w.raise()
	<-w.done
}

func (w *Worker) raise() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Bounds of the time that strangers take if half is set.
const (
	workTime = 200 * time.Microsecond // work after which there is a rest
	longWork = 20 * time.Millisecond  // a longer job counts as this much: the host was stopped meanwhile
)

// run is the loop of the worker. After workTime of jobs of strangers it rests from them for as long as they have taken.
func (w *Worker) run() {
	defer close(w.done)
	rest := time.NewTimer(0)
	defer rest.Stop()
	<-rest.C
	var worked time.Duration
	var p park.Patience
	for {
		job, closed := w.next()
		switch {
		case job != nil:
			began := time.Now()
			w.do(job)
			if w.half && job.From.IsValid() {
				worked += min(time.Since(began), longWork)
			}
			p.Nap() // owners and waiters may need this processor
		case closed:
			return
		default:
			select {
			case <-w.wake:
			case <-rest.C:
				w.setResting(false)
			}
		}
		if worked >= workTime {
			rest.Reset(worked)
			worked = 0
			w.setResting(true)
		}
	}
}

// setResting begins or ends a rest. Meanwhile Submit does not wake the worker for jobs of strangers, because each wake
// costs the caller, which owns an engine.
func (w *Worker) setResting(resting bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resting = resting
}

// next removes the next job, or returns nil. It ignores strangers during a rest.
func (w *Worker) next() (j *wire.Job, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ownFirst = !w.ownFirst
	if !w.resting && (!w.ownFirst || len(w.own) == 0) {
		j = w.strangers.pop()
	}
	if j == nil && len(w.own) > 0 {
		j = w.own[0]
		w.own[0] = nil
		w.own = w.own[1:]
	}
	return j, w.closed
}

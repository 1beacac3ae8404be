package wire

import (
	"net/netip"
	"sync"
	"sync/atomic"
)

// Job is a computation of a handshake. Do computes, on any goroutine, and uses only memory of the job. The owner of the
// engine handles the result in the next Poll.
type Job struct {
	// From is the address of the requester whose handshake is answered. It is zero if this host is the requester, or if
	// it has authenticated the requester.
	From netip.Addr

	eng     *Engine
	compute func()
	finish  func() // the connection or the request may have ended, then it overwrites the secrets
}

// Do runs the job.
func (j *Job) Do() {
	j.compute()
	j.eng.results.put(j)
	j.eng.link.Wake()
}

// results are the jobs that are done, and whose results the engine has not handled.
type results struct {
	mu   sync.Mutex
	jobs []*Job
	n    atomic.Int32
}

func (r *results) put(j *Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = append(r.jobs, j)
	r.n.Store(int32(len(r.jobs)))
}

// waiting reports whether there is a result.
func (r *results) waiting() bool { return r.n.Load() != 0 }

// take removes all jobs.
func (r *results) take() []*Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.jobs
	r.jobs = nil
	r.n.Store(0)
	return all
}

// submit runs a job. It returns false if there is no room for it.
func (e *Engine) submit(j *Job) bool {
	j.eng = e
	if r := e.host.security.Runner; r != nil {
		return r.Submit(j)
	}
	j.Do()
	return true
}

// takeResults handles the results of jobs, and returns their number.
func (e *Engine) takeResults() int {
	if !e.results.waiting() {
		return 0
	}
	all := e.results.take()
	for _, j := range all {
		j.finish()
	}
	return len(all)
}

// endHandshakes drops the requests and handles the results of jobs, because the engine closes: it sends the Rejects that
// have been computed, and overwrites everything else. The connections of the engine have ended.
func (e *Engine) endHandshakes() {
	if !e.secure {
		return
	}
	for _, r := range e.requests {
		if !r.gone {
			e.forget(r)
		}
	}
	e.takeResults()
}

// secrets are the result of a handshake.
type secrets struct{ send, receive [32]byte }

// wipe overwrites the secrets. s may be nil.
func (s *secrets) wipe() {
	if s != nil {
		*s = secrets{}
	}
}

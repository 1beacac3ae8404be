package result

// Microseconds is a time in µs.
type Microseconds int64

// Threads is what the kernel has counted for the threads of one process during a row, with its warm-up.
type Threads struct {
	// Elapsed is the time of the count.
	Elapsed Microseconds `json:"elapsed_us"`
	// RunDelay is the sum of the times in which a thread was runnable, but had no core.
	RunDelay Microseconds `json:"run_delay_us"`
	// Involuntary is how often a thread lost its core to another one.
	Involuntary int64 `json:"involuntary_switches"`
}

// DelayPerSecond returns the run delay in ms for each second. Several threads can wait at once, so it may exceed 1000.
func (t *Threads) DelayPerSecond() float64 { return t.perSecond(float64(t.RunDelay) / 1e3) }

// InvoluntaryPerSecond returns the number of involuntary switches for each second.
func (t *Threads) InvoluntaryPerSecond() float64 { return t.perSecond(float64(t.Involuntary)) }

func (t *Threads) perSecond(n float64) float64 {
	if t.Elapsed <= 0 {
		return 0
	}
	return n * 1e6 / float64(t.Elapsed)
}

// plus returns the sum of two counts. A row has no sum if one of its runs has no count.
func (t *Threads) plus(o *Threads) *Threads {
	if t == nil || o == nil {
		return nil
	}
	return &Threads{t.Elapsed + o.Elapsed, t.RunDelay + o.RunDelay, t.Involuntary + o.Involuntary}
}

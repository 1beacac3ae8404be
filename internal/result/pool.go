package result

import "slices"

// Pool is one row of its repeated runs: every round trip, all that was moved in all of the time. It is
// valid if each of them is; those that are not add nothing but their reason, unless none is. Runs in another
// mode than the first valid one are not valid.
func Pool(runs []Result) Result {
	if len(runs) == 1 {
		return runs[0]
	}
	runs = slices.Clone(runs)
	good := inOneMode(runs)
	from := good
	if len(good) == 0 {
		from = runs
	}
	out := sum(from)
	for i := range good {
		out.Runs = append(out.Runs, good[i].Figure())
	}
	out.Rounds, out.Parts = nil, nil
	for i := range runs {
		out.Rounds = append(out.Rounds, runs[i].round())
	}
	if out.Valid = len(good) == len(runs); !out.Valid {
		for _, o := range Omissions([]Result{out}) {
			out.Invalidate("%v: %s", o.Rows[0], o.Reason)
		}
	}
	return out
}

// PoolParts is one row of its parts, which are not judged: all of them were measured in one run.
func PoolParts(parts []Result) Result {
	if len(parts) == 1 {
		return parts[0]
	}
	out := sum(parts)
	for i := range parts {
		out.Parts = append(out.Parts, parts[i].Figure())
	}
	return out
}

// inOneMode returns the valid runs of the mode that the first of them has, and invalidates the valid ones of
// other modes.
func inOneMode(runs []Result) (good []Result) {
	for i := range runs {
		r := &runs[i]
		if r.Valid && len(good) > 0 && r.Mode != good[0].Mode {
			r.Invalidate("mode %s, not %s", r.Mode, good[0].Mode)
		}
		if r.Valid {
			good = append(good, *r)
		}
	}
	return good
}

// sum adds up runs of one row, at least one.
func sum(runs []Result) Result {
	out, seconds := runs[0], elapsed(&runs[0])
	out.Reason, out.Valid = "", true
	for _, r := range runs[1:] {
		out.Histogram = out.Histogram.Merge(r.Histogram)
		out.Intervals = append(out.Intervals, r.Intervals...)
		out.Samples += r.Samples
		out.Retransmits += r.Retransmits
		out.Drops += r.Drops
		out.Bidir = out.Bidir.plus(r.Bidir)
		seconds += elapsed(&r)
	}
	if seconds > 0 {
		out.Gbps = mean(runs, func(r *Result) float64 { return r.Gbps * elapsed(r) }, seconds)
		out.MsgsPerSec = float64(out.Samples) / seconds
	}
	out.Bidir = out.Bidir.over(len(runs))
	tails := [2]bool{out.P99 != nil, out.P999 != nil}
	out.SetTimes(out.Histogram)
	out.keep(tails)
	return out
}

func mean(runs []Result, part func(*Result) float64, whole float64) (sum float64) {
	for i := range runs {
		sum += part(&runs[i])
	}
	return sum / whole
}

// keep leaves out the tails that a single run has too few samples for.
func (r *Result) keep(tails [2]bool) {
	if !tails[0] {
		r.P99 = nil
	}
	if !tails[1] {
		r.P999 = nil
	}
}

// elapsed is the seconds that a row was measured for.
func elapsed(r *Result) float64 {
	if r.MsgsPerSec <= 0 {
		return 0
	}
	return float64(r.Samples) / r.MsgsPerSec
}

func (b *Bidir) plus(o *Bidir) *Bidir {
	if b == nil || o == nil {
		return b
	}
	return &Bidir{b.OutMsgsPerSec + o.OutMsgsPerSec, b.InMsgsPerSec + o.InMsgsPerSec, b.OutGbps + o.OutGbps, b.InGbps + o.InGbps}
}

// over is the mean of n that were added up.
func (b *Bidir) over(n int) *Bidir {
	if b == nil {
		return nil
	}
	d := float64(n)
	return &Bidir{b.OutMsgsPerSec / d, b.InMsgsPerSec / d, b.OutGbps / d, b.InGbps / d}
}

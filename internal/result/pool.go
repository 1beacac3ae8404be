package result

import "slices"

// Pool merges the runs of a repeated row into one result, over all their samples and their total time. Invalid runs
// contribute only their reason, unless all are invalid. A run is also invalid if its mode differs from that of the
// first valid run. The result is valid if every run is.
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

// PoolParts merges the parts of a row that were measured in one run. It does not judge them.
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

// inOneMode returns the valid runs in the mode of the first valid run. It invalidates the runs in other modes.
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

// sum adds up the runs of one row; there must be at least one.
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
		out.Client, out.Server = out.Client.plus(r.Client), out.Server.plus(r.Server)
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

// keep clears the tail percentiles for which a single run has too few samples.
func (r *Result) keep(tails [2]bool) {
	if !tails[0] {
		r.P99 = nil
	}
	if !tails[1] {
		r.P999 = nil
	}
}

// elapsed returns the measured time of a row in seconds.
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

// over returns the mean of n added values.
func (b *Bidir) over(n int) *Bidir {
	if b == nil {
		return nil
	}
	d := float64(n)
	return &Bidir{b.OutMsgsPerSec / d, b.InMsgsPerSec / d, b.OutGbps / d, b.InGbps / d}
}

package result

import "slices"

// Round is one run of a repeated row.
type Round struct {
	Valid bool `json:"valid"`
	// Reason says why the run is invalid.
	Reason     string   `json:"reason,omitempty"`
	P50        *float64 `json:"p50_us,omitempty"`
	P99        *float64 `json:"p99_us,omitempty"`
	P999       *float64 `json:"p999_us,omitempty"`
	MsgsPerSec float64  `json:"msgs_per_s,omitempty"`
	Gbps       float64  `json:"gbps,omitempty"`
}

func (r *Result) round() Round {
	return Round{Valid: r.Valid, Reason: r.Reason, P50: r.P50, P99: r.P99, P999: r.P999, MsgsPerSec: r.MsgsPerSec, Gbps: r.Gbps}
}

// rounds returns the runs of a row. A row that was not repeated is one run.
func (r *Result) rounds() []Round {
	if len(r.Rounds) > 0 {
		return r.Rounds
	}
	return []Round{r.round()}
}

// Quantity is a figure of a row, named as in the JSON.
type Quantity string

// Quantities of a row.
const (
	P50        Quantity = "p50_us"
	P99        Quantity = "p99_us"
	P999       Quantity = "p999_us"
	MsgsPerSec Quantity = "msgs_per_s"
	Gbps       Quantity = "gbps"
)

// Quantities are all quantities that a bound may use.
var Quantities = []Quantity{P50, P99, P999, MsgsPerSec, Gbps}

// Time reports whether the quantity is a time: less is better.
func (q Quantity) Time() bool { return q == P50 || q == P99 || q == P999 }

// of returns the quantity in one run; 0 if the run is invalid or has no such quantity.
func (q Quantity) of(r Round) float64 {
	v := map[Quantity]*float64{P50: r.P50, P99: r.P99, P999: r.P999, MsgsPerSec: &r.MsgsPerSec, Gbps: &r.Gbps}[q]
	if v == nil || !r.Valid {
		return 0
	}
	return *v
}

// quantity returns the quantity that Figure returns.
func (r *Result) quantity() Quantity {
	switch r.Metric {
	case Latency:
		return P50
	case Rate, Requests:
		return MsgsPerSec
	}
	return Gbps
}

// Values returns a quantity of a row in each round that has it.
func Values(r *Result, q Quantity) (out []float64) {
	for _, round := range r.rounds() {
		if v := q.of(round); v > 0 {
			out = append(out, v)
		}
	}
	return out
}

// Ratios returns a quantity of r divided by that of base, for each round that has both. The two rows of a round are
// measured close in time, so a temporary slowdown of the host affects both.
func Ratios(r, base *Result, q Quantity) (out []float64) {
	rounds, bases := r.rounds(), base.rounds()
	for i := range min(len(rounds), len(bases)) {
		if v, b := q.of(rounds[i]), q.of(bases[i]); v > 0 && b > 0 {
			out = append(out, v/b)
		}
	}
	return out
}

// Median returns the median of the values; 0 if there are none.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	return (values[(n-1)/2] + values[n/2]) / 2
}

// Base returns the row of another operation under the same conditions as r; nil if there is none. A bandwidth row of
// raw frames matches any size, because it uses full frames. Two DAT operations must have the same transport. A row of
// raw frames or of kernel TCP matches any transport, because it has only its own.
func Base(rows []Result, r *Result, op string) *Result {
	for i := range rows {
		b := &rows[i]
		frames := b.Metric == Bandwidth && b.Frames()
		if b.Op == op && r.Op != op && b.Metric == r.Metric && b.MTU == r.MTU && b.Impair == r.Impair && b.Busy == r.Busy && b.Row == b.Plain() &&
			(b.Size == r.Size || frames) && (b.Transport == r.Transport || b.Baseline() || r.Baseline()) {
			return b
		}
	}
	return nil
}

// Ratio returns the median of a row's ratios to its base. It returns nil if there is no base, or if half of the rounds
// or more have no ratio.
func Ratio(rows []Result, r *Result, op string, q Quantity) *float64 {
	b := Base(rows, r, op)
	if b == nil {
		return nil
	}
	ratios := Ratios(r, b, q)
	if !Enough(len(ratios), r, b) {
		return nil
	}
	v := Median(ratios)
	return &v
}

// FigureRatio returns the Ratio of the row's figure.
func FigureRatio(rows []Result, r *Result, op string) *float64 {
	return Ratio(rows, r, op, r.quantity())
}

// Repeats returns the number of runs of a row, valid or not.
func (r *Result) Repeats() int { return len(r.rounds()) }

// Enough reports whether n rounds are more than half of the rounds of two rows. The median of fewer rounds would depend
// too much on which rounds are valid.
func Enough(n int, r, base *Result) bool { return 2*n > max(r.Repeats(), base.Repeats()) }

// ValidRuns returns the number of valid runs. An invalid row has the figures of its valid runs, if there are any.
func (r *Result) ValidRuns() (n int) {
	for _, round := range r.rounds() {
		if round.Valid {
			n++
		}
	}
	return n
}

// SetRawRatios fills in the ratios of each row to raw frames.
func (r *Report) SetRawRatios() {
	for i := range r.Results {
		row := &r.Results[i]
		row.RawRatio = FigureRatio(r.Results, row, Raw)
		if row.Metric == Latency {
			row.RawP99Ratio = Ratio(r.Results, row, Raw, P99)
		}
	}
}

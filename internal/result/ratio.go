package result

import "slices"

// Round is one run of a row that was repeated.
type Round struct {
	Valid bool `json:"valid"`
	// Reason says why it is not valid.
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

// rounds are the runs of a row; one that was not repeated is a run itself.
func (r *Result) rounds() []Round {
	if len(r.Rounds) > 0 {
		return r.Rounds
	}
	return []Round{r.round()}
}

// Quantity is a figure of a row, by its name in the JSON.
type Quantity string

// Quantities of a row.
const (
	P50        Quantity = "p50_us"
	P99        Quantity = "p99_us"
	P999       Quantity = "p999_us"
	MsgsPerSec Quantity = "msgs_per_s"
	Gbps       Quantity = "gbps"
)

// Quantities are all that a bound may be of.
var Quantities = []Quantity{P50, P99, P999, MsgsPerSec, Gbps}

// Time is whether less of it is better.
func (q Quantity) Time() bool { return q == P50 || q == P99 || q == P999 }

// of is the quantity in one run, 0 where the run is not valid or has none.
func (q Quantity) of(r Round) float64 {
	v := map[Quantity]*float64{P50: r.P50, P99: r.P99, P999: r.P999, MsgsPerSec: &r.MsgsPerSec, Gbps: &r.Gbps}[q]
	if v == nil || !r.Valid {
		return 0
	}
	return *v
}

// quantity is what Figure is.
func (r *Result) quantity() Quantity {
	switch r.Metric {
	case Latency:
		return P50
	case Rate, Requests:
		return MsgsPerSec
	}
	return Gbps
}

// Values is a quantity of a row in each round that has it.
func Values(r *Result, q Quantity) (out []float64) {
	for _, round := range r.rounds() {
		if v := q.of(round); v > 0 {
			out = append(out, v)
		}
	}
	return out
}

// Ratios is a quantity of one row over that of another, in each round that has both: what slows a host
// down for a while slows both.
func Ratios(r, base *Result, q Quantity) (out []float64) {
	rounds, bases := r.rounds(), base.rounds()
	for i := range min(len(rounds), len(bases)) {
		if v, b := q.of(rounds[i]), q.of(bases[i]); v > 0 && b > 0 {
			out = append(out, v/b)
		}
	}
	return out
}

// Median is the middle of some values, 0 of none.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	return (values[(n-1)/2] + values[n/2]) / 2
}

// Base is the plain row of another operation in the same place as r, nil where there is none. A stream of
// raw frames is of full ones, whatever the size of r.
func Base(rows []Result, r *Result, op string) *Result {
	for i := range rows {
		b := &rows[i]
		frames := b.Metric == Bandwidth && (b.Op == Raw || b.Op == RawAsavie)
		if b.Op == op && r.Op != op && b.Metric == r.Metric && b.MTU == r.MTU && b.Impair == r.Impair && b.Row == b.Plain() && (b.Size == r.Size || frames) {
			return b
		}
	}
	return nil
}

// Ratio is the median of a row's ratios to its base, nil where there is none or most rounds have none.
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

// FigureRatio is the ratio of what a row is measured for.
func FigureRatio(rows []Result, r *Result, op string) *float64 {
	return Ratio(rows, r, op, r.quantity())
}

// Repeats is how many runs a row has, valid or not.
func (r *Result) Repeats() int { return len(r.rounds()) }

// Enough is whether n rounds are most of those of two rows. A median of fewer is of what was left by chance.
func Enough(n int, r, base *Result) bool { return 2*n > max(r.Repeats(), base.Repeats()) }

// ValidRuns is how many of them are valid. A row that is not valid has the figures of these, if there are some.
func (r *Result) ValidRuns() (n int) {
	for _, round := range r.rounds() {
		if round.Valid {
			n++
		}
	}
	return n
}

// SetRawRatios fills in what each row is beside raw frames.
func (r *Report) SetRawRatios() {
	for i := range r.Results {
		row := &r.Results[i]
		row.RawRatio = FigureRatio(r.Results, row, Raw)
		if row.Metric == Latency {
			row.RawP99Ratio = Ratio(r.Results, row, Raw, P99)
		}
	}
}

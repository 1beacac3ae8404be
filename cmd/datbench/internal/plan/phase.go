package plan

import (
	"fmt"

	"github.com/datxdp/datxdp/internal/result"
)

// Phase is a set of rows that one pair of ends measures. Both ends are opened once for all of them.
type Phase struct {
	// MTU is set on the link before the phase; 0 leaves the link unchanged.
	MTU               int
	Target, Initiator Station
	Rows              []Spec
	// NoOffloads switches the link's offloads off: no frame is larger than the MTU.
	NoOffloads bool
}

// Round identifies one of the repeated runs of a job.
type Round struct{ n, of int }

// Rounds returns the rounds of a job in order.
func Rounds(repeat int) (all []Round) {
	for n := range repeat {
		all = append(all, Round{n, repeat})
	}
	return all
}

// Note returns the text after a row's title, such as ", run 2 of 5". It is empty if there is only one round.
func (r Round) Note() string {
	if r.of <= 1 {
		return ""
	}
	return fmt.Sprintf(", run %d of %d", r.n+1, r.of)
}

// Runs holds the results of each row of a plan, one per round. The last round may be incomplete.
type Runs [][]result.Result

// Add appends the results of one round, beginning with the first row.
func (all *Runs) Add(results []result.Result) {
	for i, r := range results {
		if i == len(*all) {
			*all = append(*all, nil)
		}
		(*all)[i] = append((*all)[i], r)
	}
}

// Pooled returns one result per row.
func (all Runs) Pooled() (results []result.Result) {
	for _, of := range all {
		results = append(results, result.Pool(of))
	}
	return results
}

// CountRows returns the number of rows in the phases.
func CountRows(phases []Phase) (n int) {
	for _, ph := range phases {
		n += len(ph.Rows)
	}
	return n
}

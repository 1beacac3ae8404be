package main

import (
	"fmt"

	"github.com/datxdp/datxdp/internal/result"
)

// phase is the rows that one pair of ends measures: both ends open once for all of them.
type phase struct {
	// mtu is set before the phase; 0 leaves the link alone.
	mtu               int
	target, initiator station
	rows              []Spec
	// plain is without offloads: no frame is larger than the MTU.
	plain bool
}

// round is which of the repeated runs of a job this is.
type round struct{ n, of int }

// rounds are those of a job, first to last.
func rounds(repeat int) (all []round) {
	for n := range repeat {
		all = append(all, round{n, repeat})
	}
	return all
}

// note follows the title of what is measured in a round.
func (r round) note() string {
	if r.of <= 1 {
		return ""
	}
	return fmt.Sprintf(", run %d of %d", r.n+1, r.of)
}

// runs are the results of each row of a plan, one of each round so far. The last round may be short.
type runs [][]result.Result

// add notes what a round has measured, from its first row on.
func (all *runs) add(results []result.Result) {
	for i, r := range results {
		if i == len(*all) {
			*all = append(*all, nil)
		}
		(*all)[i] = append((*all)[i], r)
	}
}

// pooled is one result of each row.
func (all runs) pooled() (results []result.Result) {
	for _, of := range all {
		results = append(results, result.Pool(of))
	}
	return results
}

// countRows is how many the phases have.
func countRows(phases []phase) (n int) {
	for _, ph := range phases {
		n += len(ph.rows)
	}
	return n
}

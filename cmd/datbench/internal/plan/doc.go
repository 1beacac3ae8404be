// Package plan defines what datbench measures and where. A row is one measurement: an operation, a metric, a size and
// further conditions. A phase is a list of rows with the same pair of ends, and a station is the place of one end. A
// round measures every row once. The package opens nothing, so tests compare plans as values.
//
// Ordering: options are validated before rows are made from them. Ownership: values are plain and belong to their
// holder. Threading: one goroutine at a time uses a value; any goroutine may call the functions.
//
// Reading order: spec.go (one row), phase.go and station.go (where rows run), options.go (the user's choices),
// mainrows.go and raw.go (the rows of each job).
package plan

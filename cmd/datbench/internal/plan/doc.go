// Package plan says what datbench measures and where: the rows of a job, the phases and rounds in which they run, and
// the stations of both ends. It opens nothing, so that plans are tested as values.
//
// Ordering: options are validated before rows are made of them. Ownership: values are plain and belong to whoever has
// them. Threading: a value is used by one goroutine at a time; functions may be called by any.
package plan

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/datxdp/datxdp/cmd/datbench/internal/render"
	"github.com/datxdp/datxdp/internal/result"
)

// output is the destination of a report: a table, a JSON file, or only JSON on standard output.
type output struct {
	table io.Writer
	json  io.Writer
	file  *os.File // the JSON file; it keeps its old content until there is a report
	made  bool     // the file did not exist before
	// show prints the report to table; nil for render.Report.
	show func(io.Writer, *result.Report)
}

// openOutput opens the JSON file before the measurement, so that a wrong name fails immediately.
func openOutput(path string, stdout io.Writer) (*output, error) {
	switch path {
	case "":
		return &output{table: stdout}, nil
	case "-":
		return &output{json: stdout}, nil
	}
	_, err := os.Stat(path)
	made := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("--json: %w", err)
	}
	return &output{table: stdout, json: f, file: f, made: made}, nil
}

// close removes a new file if no report was written.
func (o *output) close() {
	if o.file == nil {
		return
	}
	_ = o.file.Close() // nothing was written
	if o.made {
		_ = os.Remove(o.file.Name())
	}
}

// finish writes the report of a run, if there is one. If the run was interrupted, err is the reason, and the report has
// the results so far. finish returns the first of these errors that is not nil:
//
//   - err
//   - the error that occurred when the report was written
//   - the report's verdict, which is nil if the report is valid
func (o *output) finish(r *result.Report, err error) error {
	if r == nil {
		return err
	}
	written := o.write(r)
	return cmp.Or(err, written)
}

// write prints the report to all destinations and returns whether it is valid.
func (o *output) write(r *result.Report) error {
	switch {
	case o.table != nil && o.show != nil:
		o.show(o.table, r)
	case o.table != nil:
		render.Report(o.table, r)
	}
	if err := o.writeJSON(r); err != nil {
		return err
	}
	return r.Verdict()
}

func (o *output) writeJSON(r *result.Report) error {
	if o.json == nil {
		return nil
	}
	text, err := r.JSON()
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	if o.file != nil {
		_ = o.file.Truncate(0) // fails for a device, which has no length
	}
	_, err = o.json.Write(text)
	if o.file != nil {
		err = errors.Join(err, o.file.Close())
		o.file = nil
	}
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}

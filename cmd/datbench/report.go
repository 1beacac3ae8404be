package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Report is what the JSON file holds.
type Report struct {
	Env     Env      `json:"env"`
	Results []Result `json:"results"`
}

// errInvalid ends a run that measured everything asked for, some of it in vain: exit status 1.
var errInvalid = errors.New("not valid, for the reasons given")

// verdict is nil if every result is valid. The reasons are in the table and in the JSON.
func (r *Report) verdict() error {
	bad := 0
	for _, res := range r.Results {
		if !res.Valid {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d results are %w", bad, len(r.Results), errInvalid)
}

// output is where a report goes: a table, a JSON file, or only JSON on standard output.
type output struct {
	table io.Writer
	json  io.WriteCloser
}

// openOutput opens the JSON file at once, so that a wrong name costs no measurement.
func openOutput(path string, stdout io.Writer) (*output, error) {
	switch path {
	case "":
		return &output{table: stdout}, nil
	case "-":
		return &output{json: nopCloser{stdout}}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--json: %w", err)
	}
	return &output{table: stdout, json: f}, nil
}

// write prints the report everywhere it goes and says whether it is valid.
func (o *output) write(r *Report) error {
	if o.table != nil {
		renderTable(o.table, r)
	}
	if err := o.writeJSON(r); err != nil {
		return err
	}
	return r.verdict()
}

func (o *output) writeJSON(r *Report) error {
	if o.json == nil {
		return nil
	}
	enc := json.NewEncoder(o.json)
	enc.SetIndent("", "  ")
	if err := errors.Join(enc.Encode(r), o.json.Close()); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

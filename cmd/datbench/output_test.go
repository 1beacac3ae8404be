package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/datxdp/datxdp/internal/result"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	out, err := openOutput("-", &b)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.write(&result.Report{Results: []result.Result{{Row: result.Row{Op: result.Raw}, Valid: true}}}); err != nil {
		t.Fatal(err)
	}
	var r result.Report
	if err := json.Unmarshal(b.Bytes(), &r); err != nil || len(r.Results) != 1 {
		t.Errorf("standard output is not the report alone: %v\n%s", err, b.String())
	}
}

func TestVerdict(t *testing.T) {
	r := result.Report{Results: []result.Result{{Valid: true}, {Valid: true}}}
	if err := r.Verdict(); err != nil {
		t.Errorf("all valid: %v", err)
	}
	r.Results[1].Invalidate("no")
	err := r.Verdict()
	if !errors.Is(err, result.ErrInvalid) || exitCode(err) != exitInvalid || exitCode(io.EOF) != exitUsage || exitCode(nil) != exitValid {
		t.Errorf("one invalid: %v", err)
	}
	if got, want := err.Error(), "1 of 2 results are not valid, for the reasons given"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
)

// Report is what the JSON file holds.
type Report struct {
	Env     Env      `json:"env"`
	Results []Result `json:"results"`
}

// Env names what the results were measured on.
type Env struct {
	Time       string `json:"time"`
	Command    string `json:"command"`
	Version    string `json:"version"`
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel"`
	CPU        string `json:"cpu"`
	CPUs       int    `json:"cpus"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	// Link says what lay between the two sides.
	Link string `json:"link"`
	// Fallback says why this is not the measurement that was meant; empty if it is.
	Fallback string `json:"fallback"`
	// Pcap is the file that the client's packets were captured to, at some cost; empty for none.
	Pcap string `json:"pcap,omitempty"`
	// Interrupted is set where rows are missing, because the run was ended before them.
	Interrupted bool `json:"interrupted,omitempty"`
}

// ErrInvalid ends a run that measured everything asked for, some of it in vain.
var ErrInvalid = errors.New("not valid, for the reasons given")

// Verdict is nil if every result is valid, else it wraps ErrInvalid.
func (r *Report) Verdict() error {
	bad := 0
	for _, res := range r.Results {
		if !res.Valid {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d results are %w", bad, len(r.Results), ErrInvalid)
}

// numbers are the fields that hold long lists of them: each is one line of the file.
// A bracket in the text of a round does not end it.
var numbers = regexp.MustCompile(`"(histogram_us|runs|parts)": \[[-+0-9.eE,\[\]\s]*\]|"rounds": \[([^\]"]|"([^"\\]|\\.)*")*\]`)

// JSON is the report as it stands in a file, with its last line feed.
func (r *Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	text = numbers.ReplaceAllFunc(text, func(list []byte) []byte {
		name, value, _ := bytes.Cut(list, []byte(": "))
		out := bytes.NewBuffer(append(slices.Clone(name), ": "...))
		if json.Compact(out, value) != nil {
			return list // a text that only looks like one
		}
		return out.Bytes()
	})
	return append(text, '\n'), nil
}

// ReadFile reads a file that JSON made.
func ReadFile(name string) (*Report, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is not a file of datbench --json: %w", name, err)
	}
	if len(r.Results) == 0 {
		return nil, fmt.Errorf("%s has no results in it: make it with datbench --json", name)
	}
	for i := range r.Results {
		r.Results[i].upgrade()
	}
	return r, nil
}

// upgrade fills in what the file of an older version says in another way.
func (r *Result) upgrade() {
	r.Row = r.normal()
	r.BothWays = r.BothWays || r.Bidir != nil
}

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

// Report is the content of the JSON file.
type Report struct {
	Env     Env      `json:"env"`
	Results []Result `json:"results"`
}

// Env describes the environment of the results.
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
	// Link describes the network between the two sides.
	Link string `json:"link"`
	// Fallback says why another measurement than the requested one was made; empty if it was not.
	Fallback string `json:"fallback"`
	// Pcap is the file of the client's packet capture, which costs speed; empty for none.
	Pcap string `json:"pcap,omitempty"`
	// Interrupted means that rows are missing, because the run was ended early.
	Interrupted bool `json:"interrupted,omitempty"`
}

// ErrInvalid reports a complete run with invalid results.
var ErrInvalid = errors.New("not valid, for the reasons given")

// Verdict returns nil if every result is valid; otherwise the error wraps ErrInvalid.
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

// numbers matches the fields that contain long lists; the file has each list on one line. A bracket in the text of a
// round does not end the match.
var numbers = regexp.MustCompile(`"(histogram_us|runs|parts)": \[[-+0-9.eE,\[\]\s]*\]|"rounds": \[([^\]"]|"([^"\\]|\\.)*")*\]`)

// JSON returns the report in the format of a file, with a final line feed.
func (r *Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	text = numbers.ReplaceAllFunc(text, func(list []byte) []byte {
		name, value, _ := bytes.Cut(list, []byte(": "))
		out := bytes.NewBuffer(append(slices.Clone(name), ": "...))
		if json.Compact(out, value) != nil {
			return list // a text that looks like a list
		}
		return out.Bytes()
	})
	return append(text, '\n'), nil
}

// ReadFile reads a file that JSON produced. Its strings are made printable, because the file may come from elsewhere.
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
	MakePrintable(r)
	if err := r.checkFigures(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range r.Results {
		r.Results[i].upgrade()
	}
	return r, nil
}

// upgrade converts the fields of a file of an older version.
func (r *Result) upgrade() {
	r.Row = r.normal()
	r.BothWays = r.BothWays || r.Bidir != nil
}

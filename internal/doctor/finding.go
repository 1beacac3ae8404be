package doctor

import (
	"fmt"
)

// Severity says how much a finding matters for what was asked.
type Severity int

const (
	// OK: as it should be.
	OK Severity = iota
	// Info: good to know; nothing has to be done.
	Info
	// Warning: it works, but slower, or not as one may expect.
	Warning
	// Error: what was asked will not work before this is mended.
	Error
)

func (s Severity) String() string { return [...]string{"ok", "info", "warning", "error"}[s] }

// MarshalText is the severity in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote; after an error the severity is as it was.
func (s *Severity) UnmarshalText(b []byte) error {
	for known := OK; known <= Error; known++ {
		if known.String() == string(b) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("doctor: no severity is called %q", b)
}

// Finding is one thing that a check found.
type Finding struct {
	// Check is the name of the check; see [Names].
	Check string `json:"check"`
	// Group is what was looked at: "host", "process", an interface, an address, or a peer.
	Group string `json:"group"`

	Severity Severity `json:"severity"`
	// Found is one line. Means says what follows from it, where that is not plain.
	Found string `json:"found"`
	Means string `json:"means,omitempty"`
	// Fix says what to do; Command is what to type for it, where one line of shell does it.
	Fix     string `json:"fix,omitempty"`
	Command string `json:"command,omitempty"`
}

// Report is what an examination found. Its JSON is the shape that "datbench doctor --json" prints.
type Report struct {
	// IA, Port and Peer are what was asked about; IA is empty for every interface.
	IA   string `json:"ia,omitempty"`
	Port uint16 `json:"port"`
	Peer string `json:"peer,omitempty"`
	// Severity is that of the worst finding.
	Severity Severity `json:"severity"`
	// Verdict says in one line what will happen.
	Verdict  string    `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// finish sums up the findings.
func (r *Report) finish(verdict string) {
	r.Verdict = verdict
	for _, f := range r.Findings {
		r.Severity = max(r.Severity, f.Severity)
	}
}

// worst are at most n of the findings of a severity, in the order in which they were found.
func worst(all []Finding, s Severity, n int) (out []Finding) {
	for _, f := range all {
		if f.Severity == s && len(out) < n {
			out = append(out, f)
		}
	}
	return out
}

// ok, info, warning and failure make the result of a check that found one thing.
func ok(format string, args ...any) []Finding {
	return []Finding{{Severity: OK, Found: fmt.Sprintf(format, args...)}}
}

func info(format string, args ...any) []Finding {
	return []Finding{{Severity: Info, Found: fmt.Sprintf(format, args...)}}
}

func warning(found, means, fix, command string) []Finding {
	return []Finding{{"", "", Warning, found, means, fix, command}}
}

func failure(found, means, fix, command string) []Finding {
	return []Finding{{"", "", Error, found, means, fix, command}}
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

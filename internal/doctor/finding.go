package doctor

import (
	"fmt"
)

// Severity is the importance of a finding.
type Severity int

const (
	// OK: as it should be.
	OK Severity = iota
	// Info: good to know; nothing has to be done.
	Info
	// Warning: it works, but slower or differently than expected.
	Warning
	// Error: it will not work before this is fixed.
	Error
)

func (s Severity) String() string { return [...]string{"ok", "info", "warning", "error"}[s] }

// MarshalText returns the severity in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the result of MarshalText. On an error the severity does not change.
func (s *Severity) UnmarshalText(b []byte) error {
	for known := OK; known <= Error; known++ {
		if known.String() == string(b) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("doctor: no severity is called %q", b)
}

// Finding is one result of a check.
type Finding struct {
	// Check is the name of the check.
	Check string `json:"check"`
	// Group is the object of the check: "host", "process", an interface, an address, or a peer.
	Group string `json:"group"`

	Severity Severity `json:"severity"`
	// Found is one line. Means gives its consequence, if that is not obvious.
	Found string `json:"found"`
	Means string `json:"means,omitempty"`
	// Fix says what to do. Command is the shell command for it, if one line suffices.
	Fix     string `json:"fix,omitempty"`
	Command string `json:"command,omitempty"`
}

// Report is the result of an examination. Its JSON form is printed by "datbench doctor --json".
type Report struct {
	// IA, Port and Peer are the target; IA is empty for every interface.
	IA   string `json:"ia,omitempty"`
	Port uint16 `json:"port"`
	Peer string `json:"peer,omitempty"`
	// Severity is the severity of the worst finding.
	Severity Severity `json:"severity"`
	// Verdict says in one line what will happen.
	Verdict  string    `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// finish fills in the summary.
func (r *Report) finish(verdict string) {
	r.Verdict = verdict
	for _, f := range r.Findings {
		r.Severity = max(r.Severity, f.Severity)
	}
}

// worst returns at most n findings of a severity, in order.
func worst(all []Finding, s Severity, n int) (out []Finding) {
	for _, f := range all {
		if f.Severity == s && len(out) < n {
			out = append(out, f)
		}
	}
	return out
}

// ok, info, warning and failure return the result of a check with one finding.
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

// plural returns a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

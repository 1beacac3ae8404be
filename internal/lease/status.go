package lease

import (
	"errors"
	"fmt"
	"strings"
)

// statuses are the errors that an answer can carry, by number. The number 0 is not used.
var statuses = [...]error{1: ErrDenied, ErrVersion, ErrInvalid, ErrInterface, ErrBusy, ErrTaken, ErrLimit, ErrNoRoute, ErrNoLease, ErrFailed}

// reasons are short names of statuses, for metrics.
var reasons = [len(statuses)]string{1: "denied", "version", "invalid", "interface", "busy", "taken", "limit", "no-route", "no-lease", "failed"}

// statusOf returns the number of an error. Errors without a number are failures of the daemon.
func statusOf(err error) uint16 {
	for n, known := range statuses {
		if n > 0 && errors.Is(err, known) {
			return uint16(n)
		}
	}
	return statusOf(ErrFailed)
}

// Error is a refusal of the daemon.
type Error struct {
	status error  // one of statuses
	text   string // of the daemon
}

func (e *Error) Error() string { return "datxdpd: " + e.text }

// Unwrap returns one of the errors of this package.
func (e *Error) Unwrap() error { return e.status }

// failure makes the body of a Failed.
func failure(err error) *failedBody {
	f := &failedBody{Status: statusOf(err)}
	copy(f.Text[:], strings.Map(printable, err.Error()))
	return f
}

// parse returns the error of a Failed.
func (f *failedBody) parse() error {
	if f.Status == 0 || int(f.Status) >= len(statuses) {
		return fmt.Errorf("%w: status %d", errMalformed, f.Status)
	}
	text := strings.Map(printable, strings.ToValidUTF8(string(f.Text[:]), ""))
	if text == "" {
		text = statuses[f.Status].Error()
	}
	return &Error{statuses[f.Status], text}
}

// printable drops control characters, padding included.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

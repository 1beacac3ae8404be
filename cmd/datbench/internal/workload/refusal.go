package workload

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// TakenPrefix begins the refusal of a server that another client has; the initiator then asks again.
const TakenPrefix = "taken by "

// IsTaken reports whether a refusal says that another client has the server.
func IsTaken(refusal []byte) bool { return strings.HasPrefix(string(refusal), TakenPrefix) }

// maxRefusal is the private data in bytes that a rejection carries.
const maxRefusal = 256

// Refuse rejects a request with a reason of one line. It fails if the requester has given up.
func Refuse(cr *dat.CR, reason string) error {
	text := result.OneLine(reason)
	return cr.Reject([]byte(text[:min(len(text), maxRefusal)]))
}

// TakenError is the error of a server that another client has.
type TakenError struct {
	Station plan.Station
	// By is what the server says of that.
	By string
}

func (e *TakenError) Error() string { return fmt.Sprintf("%v is %s", e.Station.Peer, e.By) }

// Waited returns the error of a server that another client had for all of the time.
func (e *TakenError) Waited(d time.Duration) error {
	return fmt.Errorf("%w, after waiting for %s: try again later, or wait longer as with --wait 1m", e, d)
}

// printable is the text that a peer sent, with a question mark for each character that a terminal would obey.
func printable(text []byte) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(text))
}

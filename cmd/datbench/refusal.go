package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// takenPrefix begins the refusal of a target that is taken, which is worth waiting for.
const takenPrefix = "taken by "

// isTaken is whether a refusal is that of a target that is taken.
func isTaken(refusal []byte) bool { return strings.HasPrefix(string(refusal), takenPrefix) }

// maxRefusal is the private data in bytes that a rejection carries.
const maxRefusal = 256

// refuse rejects a request with a reason of one line. A requester that has given up hears nothing.
func refuse(cr *dat.CR, reason string) error {
	text := result.OneLine(reason)
	return cr.Reject([]byte(text[:min(len(text), maxRefusal)]))
}

// takenError is a server that another client has.
type takenError struct {
	s station
	// by is what the server says of that.
	by string
}

func (e *takenError) Error() string { return fmt.Sprintf("%v is %s", e.s.Peer, e.by) }

// waited is what to do about a server that stayed taken.
func (e *takenError) waited(d time.Duration) error {
	return fmt.Errorf("%w, after waiting for %s: try again later, or wait longer as with --wait 1m", e, d)
}

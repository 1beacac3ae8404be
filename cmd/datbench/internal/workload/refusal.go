package workload

import (
	"fmt"
	"strings"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// TakenPrefix begins the text with which a server refuses a request while another client has the server. The refused
// initiator tries again.
const TakenPrefix = "taken by "

// KeptPrefix begins the text with which a server refuses a request because the last row from the client's address
// failed, or because that address had the server last and others wait. Such refusals end after some time. Meanwhile
// other clients come first. The refused initiator tries again.
const KeptPrefix = "kept for other clients for "

// IsTaken reports whether a refusal says that another client has the server, or may have it first.
func IsTaken(refusal []byte) bool {
	return strings.HasPrefix(string(refusal), TakenPrefix) || strings.HasPrefix(string(refusal), KeptPrefix)
}

// maxRefusal is the size in bytes of the private data in a rejection.
const maxRefusal = 256

// Refuse rejects a request with a one-line reason. It fails if the requester has given up.
func Refuse(cr *dat.CR, reason string) error {
	text := result.OneLine(reason)
	return cr.Reject([]byte(text[:min(len(text), maxRefusal)]))
}

// TakenError reports that another client has the server, or may have it first.
type TakenError struct {
	Station plan.Station
	// By is the server's text about the other client.
	By string
}

func (e *TakenError) Error() string { return fmt.Sprintf("%v is %s", e.Station.Peer, e.By) }

// Waited returns the error of a client that has waited for d and was refused all the time.
func (e *TakenError) Waited(d time.Duration) error {
	return fmt.Errorf("%w, after waiting for %s: try again later, or wait longer as with --wait 1m", e, d)
}

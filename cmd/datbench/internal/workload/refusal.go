package workload

import (
	"fmt"
	"strings"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// While a client has the server, the server refuses the requests of other clients. The text of such a refusal begins
// with TakenPrefix. The refused initiator tries again.
const TakenPrefix = "taken by "

// If a row failed, the server refuses further requests from the client's address for some time, so that other clients
// come first. The text of such a refusal begins with KeptPrefix. The refused initiator tries again.
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

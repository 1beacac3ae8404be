package workload

import (
	"encoding/binary"
	"fmt"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
)

// defaultQualifier is the connection qualifier of a datbench target: "datbench" in ASCII.
const defaultQualifier dat.ConnQual = 0x64617462656e6368

// QualifierOf returns the connection qualifier of the target of a station.
func QualifierOf(s plan.Station) dat.ConnQual {
	if s.Qualifier != 0 {
		return dat.ConnQual(s.Qualifier)
	}
	return defaultQualifier
}

// Ask is the private data of an initiator's connection request: the row, and the memory that the target may write to.
type Ask struct {
	Spec   plan.Spec
	remote dat.RMRTriplet
	// Session identifies a row: it is equal in the requests of all connections of the row. Index is the number of the
	// connection in the row, from 0.
	Session uint64
	Index   int
	// The number Job identifies a run of datbench: it is equal in all requests of the run.
	Job uint64
}

// askVersion is the first byte of an encoded Ask: the version of the fields after the row.
const askVersion = 6

// Sizes in bytes: of an encoded RMR triplet, and of the fields after the row.
const (
	remoteSize = 4 + 8 + 8
	askTail    = remoteSize + 8 + 2 + 8
)

func (a Ask) Encode() []byte {
	b := a.Spec.AppendTo([]byte{askVersion})
	b = appendRemote(b, a.remote)
	b = binary.BigEndian.AppendUint64(b, a.Session)
	b = binary.BigEndian.AppendUint16(b, uint16(a.Index))
	return binary.BigEndian.AppendUint64(b, a.Job)
}

// DecodeAsk decodes a request. It returns an error if the request exceeds a limit, because any host may send one.
func DecodeAsk(b []byte) (a Ask, err error) {
	if len(b) == 0 || b[0] != askVersion {
		return Ask{}, plan.ErrSpec
	}
	if a.Spec, b, err = plan.ParseSpec(b[1:]); err != nil {
		return Ask{}, err
	}
	if len(b) < askTail {
		return Ask{}, plan.ErrSpec
	}
	a.remote = decodeRemote(b)
	b = b[remoteSize:]
	a.Session, a.Index, a.Job = binary.BigEndian.Uint64(b), int(binary.BigEndian.Uint16(b[8:])), binary.BigEndian.Uint64(b[10:])
	if a.Index >= a.Spec.ConnectionCount() {
		return Ask{}, fmt.Errorf("connection %d of %d: %w", a.Index+1, a.Spec.ConnectionCount(), plan.ErrSpec)
	}
	return a, CheckBounds(a.Spec)
}

func appendRemote(b []byte, r dat.RMRTriplet) []byte {
	b = binary.BigEndian.AppendUint32(b, r.Context)
	b = binary.BigEndian.AppendUint64(b, r.Address)
	return binary.BigEndian.AppendUint64(b, r.Length)
}

// decodeRemote decodes remoteSize bytes.
func decodeRemote(b []byte) (r dat.RMRTriplet) {
	r.Context = binary.BigEndian.Uint32(b)
	r.Address = binary.BigEndian.Uint64(b[4:])
	r.Length = binary.BigEndian.Uint64(b[12:])
	return r
}

package workload

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// workload defines how one metric of one operation is measured. It says which buffers each side needs, and what each
// side does after the connections are established.
type workload struct {
	shape  func(plan.Spec) (initiator, target shape)
	active func(*Conn, *result.Result) (measure.Evidence, error)
	// passive returns when the initiator has signaled the end of the row.
	passive func(*Conn) (measure.Tally, error)
}

// workloadFor returns the workload of an operation and a metric. All bidirectional streams have the same workload.
func workloadFor(op, metric string, bidir bool) (workload, error) {
	if bidir && plan.Streams(metric) && slices.Contains(plan.Ops, op) {
		return workload{shapeBoth, streamBoth, answerBoth}, nil
	}
	switch op + " " + metric {
	case "send lat":
		return workload{shapePing, pingSend, echoSend}, nil
	case "write lat":
		return workload{shapeWord, pingWrite, echoWrite}, nil
	case "read lat":
		return workload{shapeRead, pingRead, idle}, nil
	case "send rate", "send bw":
		return workload{shapeStreamSend, streamSend, sinkSend}, nil
	case "send rr":
		return workload{shapeRequests, requestSend, echoSend}, nil
	case "write rate", "write bw":
		return workload{shapeStreamWrite, streamRDMA, idle}, nil
	case "read rate", "read bw":
		return workload{shapeRead, streamRDMA, idle}, nil
	case "send sha256":
		return workload{shapeTransfer, transferSend, hashSend}, nil
	case "write sha256":
		return workload{shapeTransfer, transferWrite, hashWrite}, nil
	case "read sha256":
		return workload{shapeTransfer, transferRead, hashRead}, nil
	}
	return workload{}, fmt.Errorf("no workload for %s of %s", metric, op)
}

// Numbers of buffers and requests in addition to those for the data.
const (
	// spare is the number of additional requests, for the end message of a row and its tally.
	spare = 4
	// pongs is the number of receives that are posted in advance, so that reposting is outside the timed path.
	pongs = 8
	// words is the number of source buffers of a write latency row. The writes use them round robin, because a buffer
	// may be overwritten only after its write has completed.
	words = 16
	// The first byte of each message of a stream tells the target the stage of the row: 1 is the warm-up, 2 is the
	// measured stage and 3 is the end. stages is the number of source buffers of a stream. The buffers 1 to 3 contain
	// the messages of these stages; RDMA writes use buffer 0.
	stages = 4
)

func shapePing(plan.Spec) (i, t shape) {
	both := shape{numSources: 1, messageSlots: pongs, numRequests: words + spare}
	return both, both
}

func shapeWord(plan.Spec) (i, t shape) {
	both := shape{numSources: words, rdmaSlots: 1, messageSlots: 2, numRequests: words + spare}
	return both, both
}

func shapeRead(r plan.Spec) (i, t shape) {
	return shape{numSources: 1, rdmaSlots: r.QueueDepth(), messageSlots: 1, numRequests: r.QueueDepth() + spare},
		shape{numSources: 1, rdmaSlots: r.QueueDepth(), messageSlots: 1, numRequests: r.QueueDepth() + spare}
}

// shapeStreamSend returns the shape of a stream of messages. Rate rows have twice as many receives, so that the sender
// has credit while the target reposts receives.
func shapeStreamSend(r plan.Spec) (i, t shape) {
	receives := r.QueueDepth()
	if r.Metric == result.Rate {
		receives *= 2
	}
	return shape{numSources: stages, messageSlots: 1, numRequests: r.QueueDepth() + spare},
		shape{numSources: 1, messageSlots: receives + 1, numRequests: spare}
}

func shapeStreamWrite(r plan.Spec) (i, t shape) {
	return shape{numSources: 1, messageSlots: 1, numRequests: r.QueueDepth() + spare},
		shape{numSources: 1, rdmaSlots: r.QueueDepth(), messageSlots: 1, numRequests: spare}
}

// idle is the target's side of workloads in which the target only drives its adapter until the row ends.
func idle(c *Conn) (measure.Tally, error) {
	over := false
	c.onReceive = func(slot, n int) error {
		over = n > 0 && c.mem.slot(slot)[0] == measure.StageEnd
		return nil
	}
	return measure.Tally{}, c.pollUntil(func() bool { return over })
}

// finish tells the target that the row is over and returns its tally.
func (c *Conn) finish() (t measure.Tally, err error) {
	if err := c.pollUntil(func() bool { return c.done == c.posted }); err != nil {
		return t, err
	}
	over, data := false, c.onReceive
	c.onReceive = func(slot, n int) error {
		// The first byte of a tally is 0, and the first byte of a stream's message is the stage.
		if b := c.mem.slot(slot); n == measure.TallySize && b[0] == 0 {
			t, over = measure.DecodeTally(b), true
			return nil
		}
		if data == nil {
			return nil
		}
		return data(slot, n)
	}
	c.mem.bytes[0] = measure.StageEnd
	if err := c.send(c.mem.piece(0, 1)); err != nil {
		return t, err
	}
	return t, c.pollUntil(func() bool { return over })
}

// answer sends the tally and returns when it has completed.
func (c *Conn) answer(t measure.Tally) error {
	if err := c.pollUntil(func() bool { return c.done == c.posted }); err != nil {
		return err
	}
	t.Encode(c.mem.bytes[:0])
	if err := c.send(c.mem.piece(0, measure.TallySize)); err != nil {
		return err
	}
	err := c.pollUntil(func() bool { return c.done == c.posted })
	if errors.Is(err, ErrGone) { // the initiator has received the tally
		return nil
	}
	return err
}

// timing is the begin and the end of the measured stage.
type timing struct{ from, to time.Time }

func (t timing) elapsed() time.Duration { return t.to.Sub(t.from) }

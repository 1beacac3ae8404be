package ends

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/tap"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// tcpAddr is the address of the kernel TCP listener. Its port follows the port of the DAT traffic.
func tcpAddr(a netip.Addr, s plan.Station) string { return netip.AddrPortFrom(a, s.Port+1).String() }

// tcpTarget is the target of the rows of a net.Conn: kernel TCP, and package stream.
type tcpTarget struct {
	name string // in errors
	l    net.Listener
	loss float64
	wg   sync.WaitGroup
	lock sync.Mutex
	errs []error
}

func newTCPTarget(s plan.Station) (Target, error) {
	rates, err := tap.Parse(s.Impair)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", tcpAddr(s.Local, s))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tcpName, err)
	}
	t := &tcpTarget{name: tcpName, l: l, loss: plan.LossRate(rates)}
	t.wg.Go(t.serve)
	return t, nil
}

func (t *tcpTarget) serve() {
	for {
		conn, err := t.l.Accept()
		if err != nil {
			return
		}
		if err := serveTCP(conn, t.loss); err != nil {
			t.lock.Lock()
			t.errs = append(t.errs, fmt.Errorf("%s: %w", t.name, err))
			t.lock.Unlock()
		}
	}
}

// serveTCP serves one row. The initiator first sends the Spec as a line of JSON, then messages of the row's size.
func serveTCP(conn net.Conn, loss float64) error {
	defer conn.Close() // every relevant error was returned before
	if err := impairTCP(conn, loss); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(plan.PeerTimeout)); err != nil {
		return err
	}
	var row plan.Spec
	line, err := readLine(conn)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	defer expire(conn, row)()
	if row.Op == result.TCPSpin {
		conn = spinning(conn)
	}
	buf := make([]byte, row.Size)
	if row.Metric == result.Latency {
		return echoTCP(conn, buf)
	}
	return sinkTCP(conn, buf)
}

// impairTCP makes an established connection drop a fraction of the packets that arrive. The handshake is not impaired,
// because the rows do not measure it.
func impairTCP(conn net.Conn, loss float64) error {
	if loss == 0 {
		return nil
	}
	return loseOn(conn.(*net.TCPConn), loss)
}

// readLine reads up to a line feed and consumes no byte after it.
func readLine(r io.Reader) ([]byte, error) {
	return bufio.NewReaderSize(oneByte{r}, 16).ReadBytes('\n')
}

// oneByte prevents a buffered reader from reading ahead.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

// expire ends the calls of a connection after the longest time that a row takes, unless the returned function is called
// before. A deadline of the connection would make each call of a stream read the clock.
func expire(conn net.Conn, row plan.Spec) func() bool {
	return time.AfterFunc(row.Warmup+row.Duration+plan.PeerTimeout, func() { interrupt(conn) }).Stop
}

func interrupt(conn net.Conn) { _ = conn.SetDeadline(time.Unix(1, 0)) }

func echoTCP(conn net.Conn, buf []byte) error {
	for {
		if _, err := io.ReadFull(conn, buf); err != nil {
			return ignoreEOF(err)
		}
		if _, err := conn.Write(buf); err != nil {
			return err
		}
	}
}

func sinkTCP(conn net.Conn, buf []byte) error {
	var c measure.Counter
	for {
		if _, err := io.ReadFull(conn, buf); err != nil {
			return err
		}
		if c.Add(buf[0]) {
			t := measure.Tally{Count: c.Count, Elapsed: c.Elapsed(), CoreShare: -1}
			_, err := conn.Write(t.Encode(nil))
			return err
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (t *tcpTarget) Close() error {
	err := t.l.Close()
	t.wg.Wait()
	return errors.Join(append(t.errs, err)...)
}

const tcpName = "tcp baseline"

// tcpInitiator is the initiator of the rows of a net.Conn. It opens connections for each row.
type tcpInitiator struct {
	name string // in errors
	mode string // of the results
	dial func(context.Context) (net.Conn, error)
	loss float64
}

// kernelMode is the mode of rows of kernel TCP.
const kernelMode = "kernel"

// newTCPInitiator opens an initiator whose results have the given mode.
func newTCPInitiator(s plan.Station, mode string) (Initiator, error) {
	rates, err := tap.Parse(s.Impair)
	dialer := net.Dialer{Timeout: workload.ConnectTimeout}
	if s.Local.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(s.Local, 0))
	}
	dial := func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", tcpAddr(s.Peer, s)) }
	return &tcpInitiator{tcpName, mode, dial, plan.LossRate(rates)}, err
}

func (*tcpInitiator) Close() error { return nil }

// tcpParts is the number of connections that measure a row one after the other, each for an equal part of the time. One
// connection is not enough, because the result depends on the CPUs that the scheduler chooses for the threads: on veth
// one connection had a p50 of 18 µs, and another 82 µs.
const tcpParts = 5

// Run measures a row in parts, each on its own connection. A row with packet loss has only one part, because each part
// may end with a wait for a TCP timeout.
func (i *tcpInitiator) Run(ctx context.Context, row plan.Spec) (result.Result, error) {
	part, n := row, 1
	if row.Impair == "" {
		n = tcpParts
		part.Warmup, part.Duration = row.Warmup/tcpParts, row.Duration/tcpParts
	}
	var parts []result.Result
	var elapsed time.Duration
	threads := measure.CountThreads()
	for range n {
		r, took, err := i.measure(ctx, part)
		if err != nil {
			return result.Result{}, fmt.Errorf("%s: %w", i.name, err)
		}
		parts, elapsed = append(parts, r), elapsed+took
	}
	r := result.PoolParts(parts)
	r.Client = threads.Since()
	measure.Judge(&r, measure.Evidence{Spec: row, Elapsed: elapsed})
	return r, nil
}

// measure measures on one connection.
func (i *tcpInitiator) measure(ctx context.Context, row plan.Spec) (r result.Result, elapsed time.Duration, err error) {
	conn, err := i.connect(ctx, row)
	if err != nil {
		return r, 0, err
	}
	defer conn.Close() // every relevant error was returned before
	defer context.AfterFunc(ctx, func() { interrupt(conn) })()
	defer expire(conn, row)()
	r = measure.NewResult(row)
	r.Mode = i.mode
	if row.Op == result.TCPSpin {
		conn = spinning(conn)
	}
	measure := streamTCP
	if row.Metric == result.Latency {
		measure = pingTCP
	}
	elapsed, err = measure(conn, row, &r)
	return r, elapsed, err
}

func (i *tcpInitiator) connect(ctx context.Context, row plan.Spec) (net.Conn, error) {
	conn, err := i.dial(ctx)
	if err != nil {
		return nil, err
	}
	return conn, errors.Join(impairTCP(conn, i.loss), json.NewEncoder(conn).Encode(row))
}

// pingTCP measures round trips.
func pingTCP(conn net.Conn, row plan.Spec, r *result.Result) (time.Duration, error) {
	buf := make([]byte, row.Size)
	lat, plan := measure.NewLatencies(), measure.NewSchedule(row)
	for now := time.Now(); ; {
		if _, err := conn.Write(buf); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(conn, buf); err != nil {
			return 0, err
		}
		start := now
		now = time.Now()
		switch plan.Stage(now) {
		case measure.StageMeasure:
			lat.Record(now.Sub(start))
		case measure.StageEnd:
			lat.Fill(r, now.Sub(plan.Measure))
			return now.Sub(plan.Measure), nil
		}
	}
}

// streamTCP sends messages as fast as the connection takes them, one call per message. The target counts them.
func streamTCP(conn net.Conn, row plan.Spec, r *result.Result) (time.Duration, error) {
	buf := make([]byte, row.Size)
	for plan := measure.NewSchedule(row); buf[0] != measure.StageEnd; {
		buf[0] = plan.Stage(time.Now())
		if _, err := conn.Write(buf); err != nil {
			return 0, err
		}
	}
	answer := make([]byte, measure.TallySize)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return 0, err
	}
	t := measure.DecodeTally(answer)
	r.Count(t.Count, t.Elapsed)
	return t.Elapsed, nil
}

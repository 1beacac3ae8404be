package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
)

// Transports that the main job may be told to use.
const (
	transportAuto = "auto"
	transportXDP  = "xdp"
	transportUDP  = "udp"
	transportTCP  = "tcp"
)

// job is one run over agents of its own. Each element of labs has a pair of them for itself.
type job struct {
	*app
	cfg  *config
	labs func(*config, link) [][]phase
}

// link is what the main job put between its agents.
type link struct {
	// name says it to a reader; transport says how DAT crosses it.
	name, transport string
	target          end
	initiator       end
	// mtu of the link as it was found, 0 where each phase sets it.
	mtu int
}

// end is one side of a link.
type end struct {
	ia, ifname, mac string
	addr            netip.Addr
}

// station is where an end stands, seen from the other.
func (l link) station(kind string, local, peer end, cfg *config) station {
	return station{
		Kind: kind, IA: local.ia, Interface: local.ifname, PeerMAC: peer.mac,
		Local: local.addr, Peer: peer.addr, Port: cfg.port, MTU: l.mtu,
	}
}

// phase opens both ends for one kind of traffic at one MTU; rows get the MTU.
func (l link) phase(cfg *config, kind, engine string, mtu int, rows ...Spec) phase {
	ph := phase{mtu: mtu, rows: rows}
	ph.target = l.station(kind, l.target, l.initiator, cfg)
	ph.initiator = l.station(kind, l.initiator, l.target, cfg)
	if mtu == 0 {
		mtu = l.mtu
	}
	ph.target.Engine, ph.target.MTU = engine, mtu
	ph.initiator.Engine, ph.initiator.MTU = engine, mtu
	for i := range ph.rows {
		ph.rows[i].MTU = mtu
	}
	return ph
}

// run is the main job: over XDP where this host can, else over UDP, saying why.
func (j *job) run(ctx context.Context) error {
	if err := j.cfg.validate(); err != nil {
		return err
	}
	if err := oneOf("transport", []string{j.cfg.transport}, transports); err != nil {
		return err
	}
	if err := j.cfg.validateFilters(); err != nil {
		return err
	}
	out, err := openOutput(j.cfg.json, j.stdout)
	if err != nil {
		return err
	}
	defer out.close()
	report, err := j.measure(ctx)
	return out.finish(report, err)
}

func (j *job) measure(ctx context.Context) (*Report, error) {
	files, err := j.openFiles()
	if err != nil {
		return nil, err
	}
	defer files.close() // the agent holds what it was handed
	if j.cfg.transport == transportUDP {
		return j.overUDP(ctx, files, "")
	}
	report, err := j.overXDP(ctx, files)
	var cannot *cannotError
	if errors.As(err, &cannot) && j.cfg.transport == transportAuto && ctx.Err() == nil {
		fmt.Fprintf(j.stderr, "datbench: %s: measuring over UDP between 127.0.0.1 and 127.0.0.2 instead\n", cannot.why)
		return j.overUDP(ctx, files, cannot.why)
	}
	return report, err
}

// cannotError says why this host cannot run the job over XDP, and what would help.
type cannotError struct{ why, help string }

func (e *cannotError) Error() string { return e.why + ": " + e.help }

// openFiles makes what an agent is handed.
func (j *job) openFiles() (files handed, err error) {
	if files.pcap, err = createPcap(j.cfg.pcap); err != nil {
		return files, err
	}
	if files.metrics, err = j.listenMetrics(); err != nil {
		return files, errors.Join(err, files.close())
	}
	return files, nil
}

// listenMetrics makes the socket that an agent serves metrics on: it stays in this namespace.
func (j *job) listenMetrics() (*os.File, error) {
	if j.cfg.metrics == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", j.cfg.metrics)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	defer l.Close() // File duplicates the socket
	fmt.Fprintf(j.stderr, "datbench: metrics on http://%s/metrics\n", l.Addr())
	return l.(*net.TCPListener).File()
}

var errNoRows = errors.New("nothing to measure: no row has that --op, --metric and --mtu")

// plan is what to measure over a link.
func (j *job) plan(l link) ([][]phase, error) {
	labs := j.labs(j.cfg, l)
	if len(labs) == 0 {
		return nil, errNoRows
	}
	return labs, nil
}

// execute runs each lab's phases over a pair of its own and reports. Rounds go through all of them, so that
// what is compared is measured at one time. Ended early, it returns what it has with the error.
func (j *job) execute(ctx context.Context, l link, start func() (*pair, error)) (*Report, error) {
	labs, err := j.plan(l)
	if err != nil {
		return nil, err
	}
	tell := j.newTeller(countRows(slices.Concat(labs...))*j.cfg.repeat, j.cfg.json == "-")
	defer tell.end()
	report, all := &Report{Env: newEnv(l.name)}, runs{}
	report.Env.Pcap = j.cfg.pcap
	for _, in := range rounds(j.cfg.repeat) {
		results, err := runLabs(ctx, labs, in, tell, start)
		all.add(results)
		if err != nil {
			return partial(report, all), interrupted(ctx, err)
		}
	}
	return finished(report, all), nil
}

// runLabs is one round through the labs.
func runLabs(ctx context.Context, labs [][]phase, in round, tell *teller, start func() (*pair, error)) (results []Result, err error) {
	for _, phases := range labs {
		p, err := start()
		if err != nil {
			return results, err
		}
		results = append(results, p.runPhases(ctx, phases, in, tell)...)
		if err := errors.Join(ctx.Err(), p.close()); err != nil {
			return results, err
		}
	}
	return results, nil
}

// finished is the report of a job that has made its runs: each row of all of them, beside others.
func finished(report *Report, all runs) *Report {
	report.Results = append(report.Results, all.pooled()...)
	report.SetRawRatios()
	compareImpaired(report.Results)
	return report
}

// partial is what a job that was ended has so far, nil if that is nothing.
func partial(report *Report, all runs) *Report {
	if finished(report, all); len(report.Results) == 0 {
		return nil
	}
	report.Env.Interrupted = true
	return report
}

// interrupted tells an interrupt from a failure.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

var errInterrupted = errors.New("interrupted; nothing is left behind")

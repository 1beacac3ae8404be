package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/internal/progress"
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
func (l link) phase(cfg *config, kind, engine string, mtu int, rows ...Row) phase {
	ph := phase{mtu: mtu, rows: rows, repeat: cfg.repeat}
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

// execute runs each lab's phases over a pair of its own and reports. Ended early, it returns what it
// has with the error.
func (j *job) execute(ctx context.Context, l link, start func() (*pair, error)) (*Report, error) {
	labs, err := j.plan(l)
	if err != nil {
		return nil, err
	}
	pr := progress.New(j.stderr, countRows(slices.Concat(labs...)))
	defer pr.End()
	report := &Report{Env: newEnv(l.name)}
	report.Env.Pcap = j.cfg.pcap
	for _, phases := range labs {
		p, err := start()
		if err != nil {
			return partial(report), interrupted(ctx, err)
		}
		report.Results = append(report.Results, p.runPhases(ctx, phases, pr)...)
		if err := errors.Join(ctx.Err(), p.close()); err != nil {
			return partial(report), interrupted(ctx, err)
		}
	}
	compareImpaired(report.Results)
	return report, nil
}

// interrupted tells an interrupt from a failure.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

var errInterrupted = errors.New("interrupted; nothing is left behind")

// mainPhasesXDP are the rows of the main job: everything at MTU 1500, streams again at jumbo. asavie's
// engine has a lab for itself: it cannot give a queue back.
func mainPhasesXDP(cfg *config, l link) [][]phase {
	phases := []phase{
		l.phase(cfg, kindRaw, engineNative, 1500, rawRows(cfg, opRaw)...),
		l.phase(cfg, kindDAT, "", 1500, datRows(cfg, transportXDP)...),
		l.phase(cfg, kindTCP, "", 1500, tcpRows(cfg)...),
	}
	for _, mtu := range []int{9000, 65000} {
		phases = append(phases,
			l.phase(cfg, kindRaw, engineNative, mtu, cfg.row(opRaw, metricBandwidth, transportXDP, frameSize(mtu))),
			l.phase(cfg, kindDAT, "", mtu, cfg.row(opWrite, metricBandwidth, transportXDP, streamSize)),
			l.phase(cfg, kindTCP, "", mtu, cfg.row(opTCP, metricBandwidth, transportTCP, streamSize)))
	}
	asavie := l.phase(cfg, kindRaw, engineAsavie, 1500, rawRows(cfg, opRawAsavie)...)
	return filter(cfg, phases, []phase{asavie})
}

// mainPhasesUDP are the rows that need no XDP.
func mainPhasesUDP(cfg *config, l link) [][]phase {
	return filter(cfg, []phase{
		l.phase(cfg, kindDAT, "", 0, datRows(cfg, transportUDP)...),
		l.phase(cfg, kindTCP, "", 0, tcpRows(cfg)...),
	})
}

func rawRows(cfg *config, op string) []Row {
	return []Row{
		cfg.row(op, metricLatency, transportXDP, rawFrame),
		cfg.row(op, metricRate, transportXDP, rawFrame),
		cfg.row(op, metricBandwidth, transportXDP, frameSize(1500)),
	}
}

// frameSize is the bytes of a full Ethernet frame.
func frameSize(mtu int) int64 { return int64(mtu) + 14 }

func datRows(cfg *config, transport string) (rows []Row) {
	for _, metric := range []string{metricLatency, metricRate, metricBandwidth} {
		for _, op := range []string{opSend, opWrite, opRead} {
			rows = append(rows, cfg.row(op, metric, transport, sizeFor(metric)))
		}
	}
	return rows
}

func tcpRows(cfg *config) (rows []Row) {
	for _, metric := range []string{metricLatency, metricRate, metricBandwidth} {
		rows = append(rows, cfg.row(opTCP, metric, transportTCP, sizeFor(metric)))
	}
	return rows
}

func sizeFor(metric string) int64 {
	if metric == metricBandwidth || metric == metricSHA256 {
		return streamSize
	}
	return defaultSize
}

// filter keeps the rows whose operation, metric and MTU are asked for; an empty list asks for all.
func filter(cfg *config, labs ...[]phase) (kept [][]phase) {
	for _, phases := range labs {
		var some []phase
		for _, ph := range phases {
			ph.rows = slices.DeleteFunc(ph.rows, func(r Row) bool {
				return !asked(cfg.ops, r.Op) || !asked(cfg.metric, r.Metric) || !askedMTU(cfg.mtus, r.MTU)
			})
			if len(ph.rows) > 0 {
				some = append(some, ph)
			}
		}
		if len(some) > 0 {
			kept = append(kept, some)
		}
	}
	return kept
}

func asked(list []string, word string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, word) })
}

func askedMTU(list []int, mtu int) bool {
	return len(list) == 0 || slices.Contains(list, mtu)
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/bench/peers/gopeer"
	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/progressbar"
)

// service is existing software that runs over kernel TCP, over streams, and within one process.
type service struct {
	name, library string
	flags         []string
	servers       int
	floor         bool // whether it can run within one process
	// Targets at a loss of 0 and of 1 %; 0 means none. aboveFloor is a limit for the p50 of ours above the floor, divided
	// by that of TCP above the floor. tail is a limit for the p99 of ours divided by that of TCP.
	aboveFloor, tail float64
}

var allServices = []service{
	{"gRPC unary", gopeer.GRPC, []string{"--unary"}, 1, true, 0.5, 0.25},
	{"gRPC stream", gopeer.GRPC, nil, 1, true, 0, 0},
	{"HTTP/1.1", gopeer.HTTP, nil, 1, false, 0, 0},
	{"redis GET", gopeer.Redis, nil, 1, true, 0, 0},
	{"raft commit", gopeer.Raft, nil, 2, true, 0.5, 0},
}

// servicePort is the port of all services. They run one after the other.
const servicePort = "7810"

// over is what carries the connections of a run.
type over int

// The transports of a service. Floor has all ends in one process.
const (
	overTCP over = iota
	overXDP
	overMemory
	transports
)

func (o over) adapter() []string {
	return [...][]string{overTCP: nil, overXDP: {"--ia", "xdp:" + lab.Interface}, overMemory: {"--ia", gopeer.Memory}}[o]
}

// sample is the result of one run. CPU is that of all ends, in µs for each operation.
type sample struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	CPU float64 `json:"cpu_us"`
}

// servicesConfig has the flags of the command services.
type servicesConfig struct {
	duration, limit time.Duration
	rounds          int
	loss            []float64
	services        []string
	realtime        bool
	json, markdown  string
}

const servicesHelp = `services measures gRPC, HTTP, redis and raft over kernel TCP, over streams on AF_XDP, and within one process (the
floor). The ends are processes in network namespaces that a bridge connects, which loses a part of the packets. Each
round runs every service over each transport. A ratio is the median of the ratios of the rounds.

Exit status: 0 every run has figures, 1 some run has not, 2 nothing could be measured.`

func servicesCommand(stdout, stderr io.Writer) *cobra.Command {
	cfg := &servicesConfig{duration: time.Second, rounds: 20, loss: []float64{0, 0.1, 1}, limit: 30 * time.Second}
	c := &cobra.Command{
		Use: "services", Short: "Measure gRPC, HTTP, redis and raft over kernel TCP and over streams", Long: servicesHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return compareServices(cmd.Context(), cfg, stdout, stderr) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.DurationVar(&cfg.duration, "duration", cfg.duration, "measured `time` of each run")
	f.IntVar(&cfg.rounds, "repeat", cfg.rounds, "`rounds`")
	f.Float64SliceVar(&cfg.loss, "loss", cfg.loss, "`percentages` of lost packets")
	f.StringSliceVar(&cfg.services, "service", nil, "only these `services`: "+strings.Join(serviceNames(), ", "))
	f.BoolVar(&cfg.realtime, "realtime", false, "run all ends at real-time priority, so that other programs do not delay them")
	f.DurationVar(&cfg.limit, "limit", cfg.limit, "`time` after which a run counts as stuck")
	f.StringVar(&cfg.markdown, "markdown", "", "write the table as Markdown to this `file`")
	f.StringVar(&cfg.json, "json", "", "write all figures as JSON to this `file`")
	return c
}

func serviceNames() (names []string) {
	for _, s := range allServices {
		names = append(names, s.name)
	}
	return names
}

func (c *servicesConfig) validate() error {
	var errs []error
	if c.duration < time.Millisecond {
		errs = append(errs, fmt.Errorf("--duration: %s is not 1ms or more", c.duration))
	}
	if c.rounds < 1 || c.rounds > maxRepeat {
		errs = append(errs, fmt.Errorf("--repeat: %d is not from 1 to %d", c.rounds, maxRepeat))
	}
	for _, l := range c.loss {
		if l < 0 || l > 50 {
			errs = append(errs, fmt.Errorf("--loss: %g is not from 0 to 50", l))
		}
	}
	return errors.Join(append(errs, someOf("service", c.services, serviceNames()))...)
}

// cell is a service at a loss, with the figures of each round.
type cell struct {
	Service string  `json:"service"`
	Loss    float64 `json:"loss_percent"`
	// The figures of the rounds in which every run of the cell has some.
	TCP    []sample `json:"tcp"`
	XDP    []sample `json:"xdp"`
	Floor  []sample `json:"floor"`
	Faults []string `json:"faults,omitempty"`

	service service
}

func compareServices(ctx context.Context, cfg *servicesConfig, stdout, stderr io.Writer) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root, for network namespaces and AF_XDP")
	}
	s, lose, err := openMesh(1 + slices.MaxFunc(allServices, func(a, b service) int { return a.servers - b.servers }).servers)
	if err != nil {
		return err
	}
	r := &serviceRunner{cfg: cfg, site: s, lose: lose}
	for _, loss := range cfg.loss {
		for _, one := range allServices {
			if wants(cfg.services, one.name) {
				r.cells = append(r.cells, &cell{Service: one.name, Loss: loss, service: one})
			}
		}
	}
	r.pr = progressbar.New(stderr, cfg.rounds*len(r.cells))
	ended := errors.Join(r.run(ctx), s.close())
	r.pr.End()
	report := newServiceReport(cfg, r.cells)
	fmt.Fprintln(stdout, report.table().Render())
	return cmp.Or(errors.Join(ended, report.write(cfg)), report.verdict())
}

// serviceRunner measures all cells, round by round.
type serviceRunner struct {
	cfg   *servicesConfig
	site  *site
	lose  func(percent float64) error
	cells []*cell
	pr    progressbar.Display
}

func (r *serviceRunner) run(ctx context.Context) error {
	for round := range r.cfg.rounds {
		for _, c := range r.cells {
			r.pr.Begin(fmt.Sprintf("%s, %g %% loss", c.Service, c.Loss))
			err := r.lose(c.Loss)
			if err == nil {
				err = r.round(ctx, c, round)
			}
			if ctx.Err() != nil {
				return errInterrupted
			}
			if err != nil {
				c.Faults = append(c.Faults, err.Error())
			}
		}
	}
	return nil
}

// round measures a cell once over each transport. Every second round has the reverse order.
func (r *serviceRunner) round(ctx context.Context, c *cell, round int) (err error) {
	var got [transports]sample
	for i := range transports {
		o := i
		if round%2 == 1 {
			o = transports - 1 - i
		}
		if o == overMemory && !c.service.floor {
			continue
		}
		if got[o], err = r.once(ctx, c.service, o); err != nil {
			return fmt.Errorf("%s: %w", [...]string{"TCP", "datxdp", "floor"}[o], err)
		}
	}
	c.TCP, c.XDP, c.Floor = append(c.TCP, got[overTCP]), append(c.XDP, got[overXDP]), append(c.Floor, got[overMemory])
	return nil
}

// once runs a service over a transport. The client is on the last host.
func (r *serviceRunner) once(ctx context.Context, s service, o over) (got sample, err error) {
	ctx, cancel := within(ctx, r.cfg.limit)
	defer cancel()
	var servers []*process
	defer func() {
		for _, p := range servers {
			p.stop()
		}
	}()
	var addrs []string
	for host := range s.servers {
		addr := net.JoinHostPort(r.site.hosts[host], servicePort)
		addrs = append(addrs, addr)
		if o == overMemory {
			continue
		}
		p, err := r.start(host, o, "serve", s.library, addr)
		if err != nil {
			return got, err
		}
		servers = append(servers, p)
		if err := p.await(ctx, func() bool { return strings.HasPrefix(p.out.String(), serving) }); err != nil {
			return got, fmt.Errorf("a server %w", err)
		}
	}
	last := len(r.site.hosts) - 1
	if s.library == gopeer.Raft {
		addrs = append([]string{net.JoinHostPort(r.site.hosts[last], servicePort)}, addrs...)
	}
	args := append([]string{"run", s.library, strings.Join(addrs, ","), "--duration", r.cfg.duration.String()}, s.flags...)
	client, err := r.start(last, o, args...)
	if err != nil {
		return got, err
	}
	defer client.stop()
	if err := client.end(ctx); err != nil {
		return got, fmt.Errorf("the client %w%s", err, client.because())
	}
	return serviceFigures(client, servers)
}

// start starts this program on a host.
func (r *serviceRunner) start(host int, o over, args ...string) (*process, error) {
	self := []string{os.Args[0]}
	if r.cfg.realtime {
		self = []string{"chrt", "-f", "1", os.Args[0]}
	}
	return r.site.start(host, tool.Command{Args: slices.Concat(self, args, o.adapter())})
}

// serviceFigures ends the servers and returns the figures of the run.
func serviceFigures(client *process, servers []*process) (s sample, err error) {
	var f gopeer.Figures
	if err := json.Unmarshal([]byte(client.out.String()), &f); err != nil || f.P50 == nil || f.P99 == nil || f.Operations == 0 {
		return s, fmt.Errorf("no figures in %q", client.out.String())
	}
	s = sample{P50: *f.P50, P99: *f.P99, CPU: f.CPU}
	for _, p := range servers {
		p.stop()
		var used float64
		if _, err := fmt.Sscanf(tool.LastLine(p.out.String())+"\n", strings.Replace(usedFormat, "%d", "%g", 1), &used); err != nil {
			return s, fmt.Errorf("no CPU time of the server%s", p.because())
		}
		s.CPU += used
	}
	s.CPU /= float64(f.Operations)
	return s, nil
}

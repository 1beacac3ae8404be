package doctor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/datxdp/datxdp/dat"
)

// maxMetrics is the largest number of bytes that are read of a program's metrics.
const maxMetrics = 16 << 20

// Running examines the queues of adapters that another program has open. It reads the metrics that this program serves
// at address, which is host:port or a URL. It returns an error if the metrics cannot be read or contain no adapter.
//
// System calls: those of an HTTP request.
func Running(ctx context.Context, address string) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, examineLimit)
	defer cancel()
	url := address
	if !strings.Contains(url, "://") {
		url = "http://" + url + "/metrics"
	}
	body, err := fetch(ctx, url)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	adapters, err := readQueues(io.LimitReader(body, maxMetrics))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	if len(adapters) == 0 {
		return nil, fmt.Errorf("%s: no adapter over AF_XDP is open there", url)
	}
	return queueReport(adapters), nil
}

func fetch(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // the body is not needed
		return nil, fmt.Errorf("%s: %s", url, printable(response.Status))
	}
	return response.Body, nil
}

// opened is an open adapter with the state of its queues.
type opened struct {
	ia     string
	queues []dat.QueueStats
}

// queueMetric matches a line of package metrics about a queue: metric, adapter, queue, side and value.
var queueMetric = regexp.MustCompile(`^datxdp_xdp_(queue_proven|transmit_stalled|transmit_stalls_total|reopens_total)` +
	`\{ia="((?:[^"\\]|\\.)*)",queue="(\d+)"(?:,side="(rx|tx)")?\} (\S+)$`)

// readQueues parses the text format of Prometheus. Adapters and queues keep the order of the text.
func readQueues(r io.Reader) (all []opened, err error) {
	places := make(map[string]place)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMetrics)
	for lines.Scan() {
		m := queueMetric.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		number, err := strconv.Atoi(m[3])
		if err != nil {
			return nil, err
		}
		value, err := strconv.ParseFloat(m[5], 64)
		if err != nil {
			return nil, err
		}
		set(find(&all, places, m[2], number), m[1], m[4], value)
	}
	return all, lines.Err()
}

// place is where readQueues keeps an adapter, and its queues by number.
type place struct {
	adapter int
	queues  map[int]int
}

// find returns a queue of an adapter. If the adapter or the queue is new, find adds it to the list.
func find(adapters *[]opened, places map[string]place, ia string, number int) *dat.QueueStats {
	p, known := places[ia]
	if !known {
		p = place{len(*adapters), make(map[int]int)}
		places[ia], *adapters = p, append(*adapters, opened{ia: ia})
	}
	queues := &(*adapters)[p.adapter].queues
	q, known := p.queues[number]
	if !known {
		q = len(*queues)
		p.queues[number], *queues = q, append(*queues, dat.QueueStats{Queue: number})
	}
	return &(*queues)[q]
}

func set(q *dat.QueueStats, metric, side string, value float64) {
	switch metric {
	case "queue_proven":
		if side == "rx" {
			q.RxProven = value != 0
		} else {
			q.TxProven = value != 0
		}
	case "transmit_stalled":
		q.Stalled = value != 0
	case "transmit_stalls_total":
		q.Stalls = uint64(value)
	case "reopens_total":
		q.Reopens = uint64(value)
	}
}

// queueReport returns the report about the queues of open adapters.
func queueReport(adapters []opened) *Report {
	r := &Report{}
	verdict := "Every queue transmits, and receives as far as it had to."
	for _, a := range adapters {
		name := printable(a.ia)
		for _, f := range queueFindings(a.queues) {
			f.Check, f.Group = "queues-open", name
			if r.Findings = append(r.Findings, f); f.Severity == Error {
				verdict = fmt.Sprintf("%s does not transmit: %s.", name, f.Found)
			}
		}
	}
	r.finish(verdict)
	return r
}

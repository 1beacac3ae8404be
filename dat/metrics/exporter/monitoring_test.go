package exporter_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics"
	"github.com/datxdp/datxdp/dat/metrics/exporter"
)

const monitoring = "../../../monitoring/"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(monitoring + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expressions returns the queries of the dashboard.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("a panel without a query")
		}
	}
	if len(all) < 20 {
		t.Fatalf("%d queries in the dashboard", len(all))
	}
	return all
}

// exported returns the names of the metrics, including the series of histograms.
func exported() (names []string) {
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	descs := make(chan *prometheus.Desc)
	go func() {
		metrics.NewCollector("", nil).Describe(descs)
		close(descs)
	}()
	for d := range descs {
		n := name.FindStringSubmatch(d.String())[1]
		names = append(names, n)
		if strings.HasSuffix(n, "_seconds") {
			names = append(names, n+"_bucket", n+"_sum", n+"_count")
		}
	}
	return names
}

// TestMonitoringNames: the dashboard and the alerts name only exported metrics, and each exported metric is in the
// dashboard or in an alert.
func TestMonitoringNames(t *testing.T) {
	names := exported()
	metric := regexp.MustCompile(`datxdp_\w+`)
	var used []string
	for _, file := range []string{"dashboard.json", "alerts.yml", "alerts_test.yml"} {
		for _, n := range metric.FindAllString(read(t, file), -1) {
			if used = append(used, n); !slices.Contains(names, n) {
				t.Errorf("%s: nobody exports %s", file, n)
			}
		}
	}
	for _, n := range names {
		if !slices.Contains(used, n) && !strings.HasSuffix(n, "_seconds") && !strings.Contains(n, "_seconds_") {
			t.Errorf("neither the dashboard nor an alert shows %s", n)
		}
	}
}

func TestRules(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = monitoring
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	_, config, _ := strings.Cut(read(t, "README.md"), "```yaml\n")
	config, _, _ = strings.Cut(config, "```")
	dir := t.TempDir()
	ok(t, os.WriteFile(dir+"/prometheus.yml", []byte(config), 0o600))
	ok(t, os.WriteFile(dir+"/alerts.yml", []byte(read(t, "alerts.yml")), 0o600))
	if out, err := exec.Command(promtool, "check", "config", dir+"/prometheus.yml").CombinedOutput(); err != nil {
		t.Errorf("promtool check config of the README: %v\n%s", err, out)
	}
	tested := read(t, "alerts_test.yml")
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(read(t, "alerts.yml"), -1) {
		if strings.Count(tested, "alertname: "+m[1]) < 2 {
			t.Errorf("no test shows that %s is quiet first and fires then", m[1])
		}
	}
}

// server is a Prometheus server that the test has started.
type server struct {
	url string
	log string // file
}

// startPrometheus starts a Prometheus server that scrapes a target and evaluates the alerts.
func startPrometheus(t *testing.T, program, target string) *server {
	t.Helper()
	rules, err := filepath.Abs(monitoring + "alerts.yml")
	ok(t, err)
	dir := t.TempDir()
	config := fmt.Sprintf("{global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}, rule_files: [%q], "+
		"scrape_configs: [{job_name: datxdp, static_configs: [{targets: [%q]}]}]}", rules, target)
	ok(t, os.WriteFile(dir+"/prometheus.yml", []byte(config), 0o600))
	for range 5 {
		if s := tryPrometheus(t, program, dir); s != nil {
			return s
		}
	}
	log, _ := os.ReadFile(dir + "/log")
	t.Fatalf("Prometheus does not start:\n%s", log)
	return nil
}

// tryPrometheus starts a Prometheus server on a free port. It returns nil if the server ends because the port is in
// use.
func tryPrometheus(t *testing.T, program, dir string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	address := l.Addr().String()
	ok(t, l.Close())
	s := &server{url: "http://" + address, log: dir + "/log"}
	log, err := os.Create(s.log)
	ok(t, err)
	defer log.Close() // the process has it
	cmd := exec.Command(program, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = log, log
	ok(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed, or the reason is in its log
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for start := time.Now(); time.Since(start) < patience; {
		select {
		case <-ended:
			return nil
		case <-time.After(50 * time.Millisecond):
			if s.ready() {
				return s
			}
		}
	}
	return nil
}

// ready reports whether the server answers and has our rules, because another server may have the port.
func (s *server) ready() bool { return len(s.rules()) > 0 }

// api calls the HTTP API of Prometheus. It returns false if there is no successful answer.
func (s *server) api(path string, data any) bool {
	resp, err := client.Get(s.url + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close() // it has been read
	answer := struct{ Data any }{data}
	return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(&answer) == nil
}

// query evaluates an expression and returns the number of its values that are not NaN.
func (s *server) query(expr string) (values int, valid bool) {
	var data struct{ Result []struct{ Value [2]any } }
	valid = s.api("/api/v1/query?query="+url.QueryEscape(expr), &data)
	for _, r := range data.Result {
		if r.Value[1] != "NaN" {
			values++
		}
	}
	return values, valid
}

// rule is the state of an alert in the server.
type rule struct{ Name, Health, State, LastError string }

func (s *server) rules() (all []rule) {
	var data struct{ Groups []struct{ Rules []rule } }
	s.api("/api/v1/rules", &data)
	for _, g := range data.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// noValues matches expressions that have no values over UDP or in plaintext mode.
var noValues = regexp.MustCompile(`datxdp_(xdp_|steering_|connections_by_key)`)

// TestPrometheus: a Prometheus that scrapes two adapters under load has data for every panel of the dashboard. It
// evaluates every alert, and only the expected alerts fire.
func TestPrometheus(t *testing.T) {
	program := tool(t, "prometheus")
	a, b := connect(t)
	closing(t, a.ia, b.ia)
	e := exporter.New()
	defer show(t, e, a.name, a.ia)()
	defer show(t, e, b.name, b.ia)()
	web := httptest.NewServer(e.Handler())
	defer web.Close()
	s := startPrometheus(t, program, web.Listener.Addr().String())
	until := func(what string, cond func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !cond(); exchange(t, a, b) {
			if time.Now().After(deadline) {
				log, _ := os.ReadFile(s.log)
				t.Fatalf("%s: not within %v\n%s", what, patience, log)
			}
		}
	}
	until("some scrapes", func() bool {
		n, _ := s.query("min(count_over_time(datxdp_polls_total[1m])) > 3")
		return n == 1
	})
	c, d := connectAgain(t, a, b)
	ok(t, c.ep.PostRDMAWrite(a.seg, 1, dat.RMRTriplet{Context: 1, Address: 1, Length: 64}, 0)) // no such memory
	c.await(t, dat.EventDTOCompletion)
	c.await(t, dat.EventBroken)
	d.await(t, dat.EventBroken)

	for _, expr := range expressions(t) {
		concrete := strings.NewReplacer("$ia", ".*", "$__rate_interval", "10s").Replace(expr)
		if noValues.MatchString(expr) {
			if _, valid := s.query(concrete); !valid {
				t.Errorf("not valid: %s", expr)
			}
			continue
		}
		until(expr, func() bool { n, _ := s.query(concrete); return n > 0 })
	}
	firing := func(name string) bool {
		return slices.ContainsFunc(s.rules(), func(r rule) bool { return r.Name == name && r.State == "firing" })
	}
	until("DatxdpProtectionErrors to fire", func() bool { return firing("DatxdpProtectionErrors") })
	until("DatxdpConnectionsBroken to fire", func() bool { return firing("DatxdpConnectionsBroken") })
	rules := s.rules()
	for _, r := range rules {
		if r.Health != "ok" {
			t.Errorf("rule %s: %s %s", r.Name, r.Health, r.LastError)
		}
	}
	if len(rules) != strings.Count(read(t, "alerts.yml"), "alert:") {
		t.Errorf("%d rules are evaluated", len(rules))
	}
}

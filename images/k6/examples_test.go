package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"laptime.dev/k6/internal/result"
)

// example is one script of k6's own, and what is known of it.
type example struct {
	script string   // in the folder of examples
	flags  string   // what a run's options say; empty: as the script has it
	target string   // whom it asks by HTTP: "plain" (the default), "secured" or "old"
	fails  []string // checks that do not always hold
	throws bool     // each iteration ends with an exception
	long   bool     // over three seconds, or too hasty for a busy machine: run where LAPTIME_ALL_EXAMPLES is set
}

const often = "--vus=3 --iterations=24"

// examples are all but those that need a browser, a network, a database, a source of secrets, a compiler or a shop of
// which nothing is left (pantheon), and but malicious.js and abort.ts, which are bad scripts (see there).
var examples = []example{
	{script: "base64.js", flags: often},
	{script: "cookies.js", flags: often},
	{script: "crypto.js", flags: often},
	{script: "custom_metrics.js", flags: often},
	{script: "docker-compose/influxdb-v1/script.js", flags: often, target: "secured"},
	{script: "docker-compose/opentelemetry/script.js", flags: "--duration=1s --vus=2", target: "secured"},
	{script: "enhanced/script.ts"},
	{script: "es6sample.js", long: true, fails: []string{
		"top-level test", "my group::random value is < 0.5", "my group::nested::always fails",
	}},
	{script: "experimental/csv-parse.js"},
	{script: "experimental/csv-parser.js"},
	{script: "experimental/fs/fs.js", flags: "--vus=10 --iterations=200"},
	{script: "experimental/streams.js", long: true},
	{script: "experimental/writable-streams.js"},
	{script: "graphql.js", flags: often, target: "secured"},
	{script: "grpc_client_streaming.js", flags: "--vus=2 --iterations=2"},
	{script: "grpc_healthcheck.js", flags: often},
	{script: "grpc_invoke.js", flags: often},
	{script: "grpc_reflection.js", flags: often},
	{script: "grpc_server_streaming.js", flags: "--vus=4 --iterations=8"},
	{script: "html_form_post.js", flags: often},
	{script: "http_2.js", flags: often, target: "secured"},
	{script: "http_basic_auth.js", flags: often},
	{script: "http_batch.js", flags: often, target: "secured"},
	{script: "http_digest_auth.js", flags: often},
	{script: "http_get.js", flags: often, target: "secured"},
	{script: "http_verbs.js", flags: often},
	{script: "json.js", flags: often},
	{script: "jwt.js"},
	{script: "localhost.js", flags: often},
	{script: "logging.js", flags: often},
	{script: "ocsp.js", flags: often, target: "secured"},
	{script: "redirects.js", flags: often, target: "secured"},
	{script: "source_map/issue_1804/main.js", flags: "--iterations=3", throws: true},
	{script: "stages.js", flags: "--stage=1s:3"},
	{script: "tagging.js", flags: often},
	{script: "thresholds.js", flags: often},
	{script: "thresholds_readme_example.js", flags: "--vus=3 --iterations=3", target: "secured", long: true},
	{script: "timers.js", flags: often},
	{script: "tls_skip_cert_verification.js", flags: often, target: "secured"},
	{script: "tlsconfig.js", flags: often, target: "old"},
	{script: "webcrypto/digest.js", flags: often},
	{script: "websocket.js", flags: "--vus=2 --iterations=2"},
	// It pings after a second, whether it is connected or not.
	{script: "websockets/test-echo.js", flags: "--vus=2 --iterations=2", long: true},
}

// k6's own examples run here as they are, and all that is said of them is what k6 itself says of the same process: in
// its summary, and sample by sample in its raw output. The scripts are in k6's module and never in this repository.
func TestK6sOwnExamplesSayWhatK6Says(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts k6 for each of many scripts")
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "go.k6.io/k6/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(module))
	folder := cmp.Or(os.Getenv("K6_EXAMPLES"), filepath.Join(root, "examples"))
	const proto = "internal/lib/testutils/grpcservice/route_guide.proto"
	path, err := filepath.Rel(folder, filepath.Join(root, proto))
	if err != nil {
		t.Fatal(err)
	}
	world, all := newWorld(t), slices.Clone(examples)
	speaks := speakGRPC(t, filepath.Join(root, proto))
	if os.Getenv("LAPTIME_ALL_EXAMPLES") != "" {
		more, err := filepath.Glob(filepath.Join(folder, "webcrypto/*/*.js"))
		for _, name := range []string{"getRandomValues.js", "randomUUID.js"} {
			more = append(more, filepath.Join(folder, "webcrypto", name))
		}
		if err != nil || len(more) == 0 {
			t.Fatalf("%d more, %v", len(more), err)
		}
		for _, path := range more {
			all = append(all, example{script: strings.TrimPrefix(path, folder+"/")})
		}
	}
	environment := []string{"SSL_CERT_FILE=" + world.authority, "LAPTIME_WARMUP_SECONDS=0"}
	table := &rows{byName: map[string]string{}}
	t.Cleanup(func() { table.print(t, os.Getenv("LAPTIME_EXAMPLES_TABLE")) })
	for _, one := range all {
		if one.long && os.Getenv("LAPTIME_ALL_EXAMPLES") == "" {
			continue
		}
		t.Run(one.script, func(t *testing.T) {
			t.Parallel()
			target := map[string]string{"": world.plain.URL, "secured": world.secured.URL, "old": world.old.URL}[one.target]
			if strings.HasPrefix(one.script, "grpc_") {
				target = "http://" + speaks
			}
			raw := filepath.Join(t.TempDir(), "raw.json")
			flags := append(strings.Fields(one.flags), "--config="+world.names, "--out=json="+raw, "--env=GRPC_ADDR="+speaks, "--env=GRPC_PROTO_PATH="+path)
			out, k6s := own(t, append(environment, "TARGET="+target), filepath.Join(folder, one.script), flags...)
			seen := read(t, raw)
			seen.compare(t, out.result, k6s)
			said := out.result.Script
			for name, check := range said.Checks {
				if check.Failed > 0 && !slices.Contains(one.fails, name) {
					t.Errorf("check %q failed %d times\n%.2000s", name, check.Failed, out.stderr)
				}
			}
			if thrown := len(said.Exceptions) > 0; thrown != one.throws || said.Iterations == 0 {
				t.Errorf("%d iterations, exceptions %v\n%.2000s", said.Iterations, said.Exceptions, out.stderr)
			}
			same := "the same"
			if t.Failed() {
				same = "**not the same**"
			}
			table.add(one.script, fmt.Sprintf("| `%s` | %s | %d iterations, %s | %s | %s |",
				one.script, flagged(one.flags), said.Iterations, requested(out.result), judged(said), same))
		})
	}
}

// rows is a table that tests fill that run side by side.
type rows struct {
	mutex  sync.Mutex
	byName map[string]string
}

func (r *rows) add(name, row string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.byName[name] = row
}

// print writes the table where it is asked for.
func (r *rows) print(t *testing.T, path string) {
	if path == "" {
		return
	}
	text := "| script | options of the run | what ran | what was said of it | k6's summary and raw output |\n|---|---|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(r.byName)) {
		text += r.byName[name] + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

// flagged says which options were given.
func flagged(flags string) string {
	if flags == "" {
		return "as it has them"
	}
	return "`" + flags + "`"
}

// requested says in words what was asked.
func requested(r *result.Result) string {
	text := fmt.Sprintf("%d requests", r.Phases["measured"].Requests)
	for _, host := range slices.Sorted(maps.Keys(r.Script.OtherHosts)) {
		// Servers of the tests have another port each time.
		name, _, _ := strings.Cut(host, ":")
		text += fmt.Sprintf(", %d to %s", r.Script.OtherHosts[host].Requests, name)
	}
	for _, name := range []string{"ws_sessions", "ws_msgs_sent", "ws_msgs_received", "grpc_streams", "grpc_streams_msgs_sent", "grpc_streams_msgs_received"} {
		if m := r.Script.Metrics[name]; m != nil {
			text += fmt.Sprintf(", %s %v", name, m.Sum)
		}
	}
	return text
}

// judged says in words what became of checks and thresholds.
func judged(said *result.Script) string {
	var passed, failed, met int64
	for _, check := range said.Checks {
		passed, failed = passed+check.Passed, failed+check.Failed
	}
	for _, one := range said.Thresholds {
		if one.Met {
			met++
		}
	}
	text := fmt.Sprintf("checks: %d held, %d did not", passed, failed)
	if len(said.Thresholds) > 0 {
		text += fmt.Sprintf("; thresholds: %d of %d met", met, len(said.Thresholds))
	}
	return text
}

// point is one sample of k6's raw output.
type point struct {
	metric string
	value  float64
	tags   map[string]string
}

// raw is all that k6 said of a run, sample by sample.
type raw struct {
	points []point
	trends map[string]bool
}

func read(t *testing.T, path string) *raw {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	seen := &raw{trends: map[string]bool{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Type, Metric string
			Data         struct {
				Type  string
				Value float64
				Tags  map[string]string
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v\n%s", err, lines.Bytes())
		}
		switch line.Type {
		case "Metric":
			seen.trends[line.Metric] = line.Data.Type == "trend"
		case "Point":
			seen.points = append(seen.points, point{line.Metric, line.Data.Value, line.Data.Tags})
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return seen
}

// asked is what the raw output says of one request, in milliseconds.
type asked struct {
	blocked, connecting, duration float64
	failed, ofSetup               bool
}

func (a *asked) latency() float64 { return max(a.blocked, a.connecting) + a.duration }

// requests puts requests together again: k6 writes the samples of one after each other. Calls of gRPC are requests,
// streams and k6's own questions are not.
func (seen *raw) requests() []asked {
	streams := map[string]bool{}
	for _, one := range seen.points {
		if one.metric == "grpc_streams" {
			streams[one.tags["url"]] = true
		}
	}
	var all []asked
	last := &asked{}
	for _, one := range seen.points {
		switch one.metric {
		case "http_reqs":
			all = append(all, asked{ofSetup: strings.HasPrefix(one.tags["group"], "::setup")})
			last = &all[len(all)-1]
		case "http_req_blocked":
			last.blocked = one.value
		case "http_req_connecting", "http_req_tls_handshaking":
			last.connecting += one.value
		case "http_req_duration":
			last.duration = one.value
		case "http_req_failed":
			last.failed = one.value != 0
		case "grpc_req_duration":
			if one.tags["url"] != "" && !streams[one.tags["url"]] {
				all = append(all, asked{duration: one.value, failed: one.tags["status"] != "0"})
			}
		}
	}
	return all
}

// nearest gives the value at or below which that share of sorted values lies.
func nearest(values []float64, share float64) float64 {
	return values[max(1, int(math.Ceil(share*float64(len(values))-1e-9)))-1]
}

var shares = []float64{0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}

// compare compares a result with what k6 says of the same process: counts exactly, percentiles to 1 %.
func (seen *raw) compare(t *testing.T, r *result.Result, k6s map[string]summarised) {
	t.Helper()
	compareMetrics(t, r.Script, k6s)
	for name, m := range r.Script.Metrics {
		if m.Type != "trend" {
			continue
		}
		values := seen.of(name)
		if int64(len(values)) != m.Samples || m.Cells == nil {
			t.Errorf("%s: %d samples, k6 wrote %d; cells: %v", name, m.Samples, len(values), m.Cells != nil)
			continue
		}
		for _, share := range shares {
			if exact, ours := nearest(values, share), quantile(m, share); math.Abs(ours-exact) > math.Abs(exact)/100 {
				t.Errorf("%s: %v is %v, and %v of what k6 wrote", name, share, ours, exact)
			}
		}
	}
	seen.compareRequests(t, r)
	checks := map[string]*result.CheckCount{}
	for _, one := range seen.points {
		if one.metric != "checks" {
			continue
		}
		name := one.tags["check"]
		if group := strings.TrimPrefix(one.tags["group"], "::"); group != "" {
			name = group + "::" + name
		}
		if checks[name] == nil {
			checks[name] = &result.CheckCount{}
		}
		if one.value != 0 {
			checks[name].Passed++
		} else {
			checks[name].Failed++
		}
	}
	for name, one := range r.Script.Checks {
		if checks[name] == nil || *checks[name] != *one {
			t.Errorf("check %q: %+v, k6 wrote %+v", name, one, checks[name])
		}
	}
	if len(checks) != len(r.Script.Checks) {
		t.Errorf("%d checks, k6 wrote %d", len(r.Script.Checks), len(checks))
	}
	for _, one := range r.Script.Thresholds {
		if crossed, found := k6s[one.Metric].Thresholds[one.Expression]; !found || one.Met == crossed {
			t.Errorf("%+v, k6 says crossed %v (known: %v)", one, crossed, found)
		}
	}
}

// of gives the sorted values of a metric, or of a sub-metric by its tags.
func (seen *raw) of(name string) []float64 {
	metric, criteria, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
	var values []float64
	for _, one := range seen.points {
		matches := one.metric == metric
		for _, pair := range strings.Split(criteria, ",") {
			key, value, _ := strings.Cut(pair, ":")
			matches = matches && (pair == "" || one.tags[key] == value)
		}
		if matches {
			values = append(values, one.value)
		}
	}
	slices.Sort(values)
	return values
}

// compareRequests compares how many requests there were, how many failed and how long they took.
func (seen *raw) compareRequests(t *testing.T, r *result.Result) {
	t.Helper()
	var errors, bytes, failed int64
	for _, phase := range r.Phases {
		for _, count := range phase.Errors {
			errors += count
		}
		bytes += phase.BytesReceived
	}
	for _, host := range r.Script.OtherHosts {
		errors += host.Errors
	}
	all := seen.requests()
	var latencies []float64
	for _, one := range all {
		if one.failed {
			failed++
		} else if !one.ofSetup {
			latencies = append(latencies, one.latency())
		}
	}
	if got := requests(r); got != int64(len(all)) || errors != failed {
		t.Errorf("%d requests, %d errors; k6 wrote %d and %d", got, errors, len(all), failed)
	}
	if received := seen.of("data_received"); len(received) > 0 {
		sum := 0.0
		for _, one := range received {
			sum += one
		}
		if float64(bytes) != sum {
			t.Errorf("%d bytes received, k6 wrote %v", bytes, sum)
		}
	}
	if len(r.Script.OtherHosts) > 0 || len(latencies) == 0 {
		return // what was kept apart was counted
	}
	slices.Sort(latencies)
	together := hdrhistogram.New(1, result.MaxMicroseconds, 3)
	for _, endpoint := range r.Phases["measured"].Endpoints {
		together.Merge(decode(t, endpoint.Latency))
	}
	for _, share := range shares {
		exact, ours, counted := nearest(latencies, share), 0.0, int64(0)
		for _, bar := range together.Distribution() {
			if counted += bar.Count; float64(counted) >= share*float64(len(latencies))-1e-9 && bar.Count > 0 {
				ours = float64(bar.To) / 1000
				break
			}
		}
		if math.Abs(ours-exact) > exact/100+0.001 {
			t.Errorf("%v of %d response times is %v ms, and %v of what k6 wrote", share, len(latencies), ours, exact)
		}
	}
}

// What every executor does, in groups and with tags, is said as k6 says it, percentiles of some thousand samples as well.
func TestEveryExecutorSaysWhatK6Says(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(strings.Repeat("x", 100)))
	})
	raw := filepath.Join(t.TempDir(), "raw.json")
	environment := []string{"TARGET=" + server.URL, "LAPTIME_WARMUP_SECONDS=0"}
	out, k6s := own(t, environment, "testdata/executors.js", "--env=BASE_URL="+server.URL, "--out=json="+raw)
	read(t, raw).compare(t, out.result, k6s)
	said := out.result.Script
	if got := requests(out.result); got != server.requests.Load() || len(said.Thresholds) != 16 || len(said.Executors) != 6 || said.Iterations < 100 {
		t.Errorf("%d requests, the server saw %d, %d iterations of %v, thresholds %+v", got, server.requests.Load(), said.Iterations, said.Executors, said.Thresholds)
	}
	if dropped := said.Metrics["dropped_iterations"]; dropped == nil || int64(dropped.Sum) != out.result.Phases["measured"].DroppedIterations {
		t.Errorf("dropped %+v, %d", dropped, out.result.Phases["measured"].DroppedIterations)
	}
}

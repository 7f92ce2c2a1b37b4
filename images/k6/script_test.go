package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laptime.dev/k6/internal/freeport"
	"laptime.dev/k6/internal/result"
)

// summarised is one metric in the summary that k6 itself writes of a run.
type summarised struct {
	Count, Rate, Value, Passes, Fails, Min, Max, Avg float64
	Med                                              float64 `json:"med"`
	P90                                              float64 `json:"p(90)"`
	P95                                              float64 `json:"p(95)"`
	// By expression, whether it was crossed.
	Thresholds map[string]bool
}

// own runs a script, and gives the result and k6's own summary of the same process.
func own(t *testing.T, environment []string, script string, flags ...string) (outcome, map[string]summarised) {
	t.Helper()
	export := filepath.Join(t.TempDir(), "summary.json")
	out := k6(t, environment, nil, slices.Concat([]string{"--summary-mode=compact", "--summary-export=" + export}, flags, []string{script})...)
	if out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	text, err := os.ReadFile(export)
	if err != nil {
		t.Fatal(err)
	}
	var summary struct{ Metrics map[string]summarised }
	if err := json.Unmarshal(text, &summary); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out, summary.Metrics
}

func write(t *testing.T, source string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "own.js")
	if err := os.WriteFile(script, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return script
}

func requests(r *result.Result) (all int64) {
	for _, phase := range r.Phases {
		all += phase.Requests
	}
	for _, host := range r.Script.OtherHosts {
		all += host.Requests
	}
	return all
}

// The script that the documentation of k6 would show says all that it says in k6's own summary.
func TestAScriptAsDocumentedCountsAsInK6sOwnSummary(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(3 * time.Millisecond)
		_, _ = w.Write([]byte("[]"))
	})
	out, k6s := own(t, []string{"TARGET=" + server.URL}, "testdata/as-documented.js", "--env=BASE_URL="+server.URL)
	said := out.result.Script
	if got := requests(out.result); float64(got) != k6s["http_reqs"].Count || got != server.requests.Load() {
		t.Errorf("%d requests, k6 says %v, the server saw %d", got, k6s["http_reqs"].Count, server.requests.Load())
	}
	if out.result.Phases["setup"].Requests != 1 || float64(said.Iterations) != k6s["iterations"].Count || said.Iterations == 0 {
		t.Errorf("setup %+v, %d iterations, k6 says %v", out.result.Phases["setup"], said.Iterations, k6s["iterations"].Count)
	}
	right, wrong := said.Checks["listing::status is 200"], said.Checks["listing::never holds"]
	if len(said.Checks) != 2 || float64(right.Passed) != k6s["checks"].Passes || float64(wrong.Failed) != k6s["checks"].Fails ||
		right.Failed != 0 || wrong.Passed != 0 || said.WrongAnswers != wrong.Failed {
		t.Errorf("%d checks: %+v, %+v, %d wrong answers, k6 says %+v", len(said.Checks), right, wrong, said.WrongAnswers, k6s["checks"])
	}
	if said.Warmup != "" || !slices.Equal(said.Executors, []string{"ramping-vus"}) || said.Aborted {
		t.Errorf("%+v", said)
	}
	compareMetrics(t, said, k6s)
	if one, all := said.Metrics["group_duration{group:::listing}"], said.Metrics["group_duration"]; one == nil || one.Samples != all.Samples || one.Sum != all.Sum {
		t.Errorf("group %+v, all groups %+v", one, all)
	}
	if len(said.Thresholds) != 3 {
		t.Errorf("thresholds %+v", said.Thresholds)
	}
	for _, one := range said.Thresholds {
		if one.Met || one.Samples == 0 {
			t.Errorf("%+v was met", one)
		}
	}
	pause := (said.IterationSeconds - said.RequestSeconds) / float64(said.Iterations)
	if pause < 0.020 || pause > 1 || said.RequestSeconds < 0.003*float64(said.Iterations) {
		t.Errorf("an iteration with a pause of 20 ms rests for %v s, its requests take %v s", pause, said.RequestSeconds)
	}
}

// An iteration that is over before minIterationDuration rests, and k6 does not count that in its duration.
func TestWhatMinIterationDurationAddsIsPartOfAnIteration(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("[]")) })
	script := write(t, "import http from 'k6/http'; export const options = {vus: 2, iterations: 10, minIterationDuration: '50ms'};"+
		"export default () => { http.get(__ENV.TARGET); };")
	out, _ := own(t, []string{"TARGET=" + server.URL}, script)
	if said := out.result.Script; said.Iterations != 10 || said.IterationSeconds < 0.499 || said.RequestSeconds >= said.IterationSeconds {
		t.Errorf("%d iterations of 50 ms take %v s, their requests %v s", said.Iterations, said.IterationSeconds, said.RequestSeconds)
	}
}

// compareMetrics compares all that was kept with what k6 says of it.
func compareMetrics(t *testing.T, said *result.Script, k6s map[string]summarised) {
	t.Helper()
	for name, m := range said.Metrics {
		k, found := k6s[name]
		if strings.Contains(name, "{") && !found {
			continue // k6 tells groups, scenarios and tags apart where a threshold does
		}
		switch m.Type {
		case "counter":
			found = found && math.Abs(m.Sum-k.Count) < 1e-6
		case "gauge":
			found = found && m.Last == k.Value && m.Min == k.Min && m.Max == k.Max
		case "rate":
			found = found && float64(m.Passes) == k.Passes && float64(m.Samples-m.Passes) == k.Fails
		case "trend":
			found = found && m.Min == k.Min && m.Max == k.Max && math.Abs(m.Sum/float64(m.Samples)-k.Avg) < 1e-6
			for share, exact := range map[float64]float64{0.5: k.Med, 0.9: k.P90, 0.95: k.P95} {
				// Between two samples k6 draws a line: with few of them that is far from both.
				low, high := quantile(m, share-2/float64(m.Samples)), quantile(m, share+2/float64(m.Samples))
				if exact < low-math.Abs(low)/100 || exact > high+math.Abs(high)/100 {
					t.Errorf("%s: %v of %v is %v to %v, k6 says %v", name, share, m.Samples, low, high, exact)
				}
			}
		}
		if !found {
			t.Errorf("%s: %+v, k6 says %+v", name, m, k)
		}
	}
	for name := range k6s {
		if !strings.HasPrefix(name, "http_req") && said.Metrics[name] == nil && k6s[name].Thresholds == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func quantile(m *result.Metric, share float64) float64 {
	cells := *m.Cells
	keys := make([]uint32, 0, len(cells))
	for cell := range cells {
		keys = append(keys, cell)
	}
	value := func(cell uint32) float64 { return math.Float64frombits(uint64(cell) << 42) }
	slices.SortFunc(keys, func(a, b uint32) int {
		if value(a) < value(b) {
			return -1
		}
		return 1
	})
	seen, wanted := int64(0), min(max(share, 0), 1)*float64(m.Samples)
	for _, cell := range keys {
		seen += cells[cell]
		if float64(seen) >= wanted {
			return min(max(value(cell), m.Min), m.Max)
		}
	}
	return m.Max
}

// Every kind of expression on every kind of metric comes out as k6 itself says.
func TestThresholdsComeOutAsInK6(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(4 * time.Millisecond)
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	expressions := map[string][]string{
		"http_req_duration":                         {"p(95)<1", "p(95)<2000", "avg>0", "avg<1", "min>=0", "max<60000", "med<1", "p(99.9)<60000", "p(0)>0", "p(100)<1"},
		"http_req_duration{name:list}":              {"p(90)<2000", "p(90)<1", "med>1"},
		"http_req_duration{name:missing}":           {"avg<1", "avg>1"},
		"http_req_duration{group:::inner}":          {"max>0", "max<1"},
		"http_req_duration{group:::setup}":          {"max>0", "max<1"},
		"http_req_duration{expected_response:true}": {"p(95)<2000", "p(95)<0.5"},
		"http_req_duration{nobody:ever}":            {"p(95)<1", "p(95)>1", "avg==0", "min<0"},
		"http_req_failed":                           {"rate<0.1", "rate>0.1", "rate<=1", "rate==0.5"},
		"http_req_failed{name:list}":                {"rate==0", "rate!=0"},
		"http_req_failed{nobody:ever}":              {"rate>0.5", "rate<0.5"},
		"http_reqs":                                 {"count>10", "count<10", "rate>0.1", "rate<0.1", "count==81", "count===81"},
		"http_reqs{scenario:default}":               {"count==80", "count!=80"},
		"http_req_waiting":                          {"avg>1", "avg<1"},
		"checks":                                    {"rate>0.9", "rate<0.9", "rate==0.5"},
		"checks{check:never}":                       {"rate==0", "rate>0"},
		"iterations":                                {"count==40", "count<40"},
		"iteration_duration":                        {"avg<1", "med>1"},
		"data_received":                             {"count>0", "rate<0.001"},
		"vus":                                       {"value>=0", "value>1000"},
		"my_trend":                                  {"p(50)>=2", "p(50)<2", "max==3", "min===-1", "avg<100"},
		"my_trend{kind:a}":                          {"max<=3", "max<3"},
		"my_counter":                                {"count==80", "count<80"},
		"my_gauge":                                  {"value==7", "value<7"},
		"my_rate":                                   {"rate==0.5", "rate>0.75", "rate<0.75"},
		"my_rate{kind:never}":                       {"rate>0.75"},
		"never_used":                                {"max<1", "max>1"},
	}
	number := 0
	for _, all := range expressions {
		number += len(all)
	}
	if number < 60 {
		t.Fatalf("only %d expressions", number)
	}
	text, err := json.Marshal(expressions)
	if err != nil {
		t.Fatal(err)
	}
	script := write(t, fmt.Sprintf(`
		import http from 'k6/http';
		import { check, group } from 'k6';
		import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
		const trend = new Trend('my_trend'), counter = new Counter('my_counter'), gauge = new Gauge('my_gauge'), rate = new Rate('my_rate');
		new Trend('never_used');
		export const options = { vus: 2, iterations: 40, thresholds: %s };
		export function setup() { http.get(__ENV.TARGET + '/'); }
		export default function () {
			group('inner', () => http.get(__ENV.TARGET + '/', { tags: { name: 'list' } }));
			http.get(__ENV.TARGET + '/missing', { tags: { name: 'missing' } });
			check(1, { always: true, never: false });
			trend.add(-1); trend.add(2); trend.add(3, { kind: 'a' });
			counter.add(2); gauge.add(7); rate.add(true); rate.add(false);
		}`, text))
	out, k6s := own(t, []string{"TARGET=" + server.URL}, script)
	if len(out.result.Script.Thresholds) != number {
		t.Errorf("%d of %d thresholds", len(out.result.Script.Thresholds), number)
	}
	for _, one := range out.result.Script.Thresholds {
		crossed, found := k6s[one.Metric].Thresholds[one.Expression]
		if !found || one.Met == crossed {
			t.Errorf("%+v, k6 says crossed %v (known: %v)", one, crossed, found)
		}
	}
	compareMetrics(t, out.result.Script, k6s)
}

// A warm-up by time is cut off whatever the scenarios are called, setup() and checks included.
func TestAWarmupByTimeIsCutOff(t *testing.T) {
	var lock sync.Mutex
	var seen []time.Time
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			lock.Lock()
			defer lock.Unlock()
			seen = append(seen, time.Now())
		}
	})
	script := write(t, `
		import http from 'k6/http';
		import { check, sleep } from 'k6';
		import { Counter } from 'k6/metrics';
		const counted = new Counter('counted');
		export const options = { scenarios: {
			one: { executor: 'constant-arrival-rate', rate: 50, duration: '2s', preAllocatedVUs: 19 },
			two: { executor: 'per-vu-iterations', vus: 1, iterations: 1, startTime: '1500ms' },
		}, thresholds: { counted: ['count<95'], checks: ['rate>0.99'] } };
		export function setup() { http.get(__ENV.TARGET + '/login'); sleep(0.7); }
		export default function () {
			const began = Date.now();
			const answer = http.get(__ENV.TARGET + '/', { tags: { name: 'list' } });
			check(answer, { 'later': () => began > __ENV.CUT - 0 });
			counted.add(1);
		}`)
	out, _ := own(t, []string{"TARGET=" + server.URL, "LAPTIME_WARMUP_SECONDS=1"}, script, "--env=CUT=0")
	warm, measured, said := out.result.Phases["warmup"], out.result.Phases["measured"], out.result.Script
	if warm.Requests+measured.Requests != int64(len(seen)) || out.result.Phases["setup"].Requests != 1 {
		t.Errorf("%d and %d requests, the server saw %d", warm.Requests, measured.Requests, len(seen))
	}
	late := int64(0)
	for _, at := range seen {
		if at.Sub(seen[0]) >= time.Second {
			late++
		}
	}
	// At the cut some are under way, at most one of each VU.
	const vus = 20
	if math.Abs(float64(late-measured.Requests)) > vus || warm.Requests < 10 || measured.Requests < 10 {
		t.Errorf("%d in warm-up, %d measured, of which the server saw %d", warm.Requests, measured.Requests, late)
	}
	if said.Warmup != "time" || math.Abs(float64(said.Checks["later"].Passed-measured.Requests)) > vus {
		t.Errorf("%+v, checks %+v", said, said.Checks["later"])
	}
	// k6 itself counts some hundred, and would call the threshold crossed.
	if one := said.Thresholds[1]; one.Metric != "counted" || !one.Met || math.Abs(one.Value-float64(measured.Requests)) > vus {
		t.Errorf("%+v", said.Thresholds)
	}
}

// What others answer is not the server's, however the script calls their requests.
func TestOtherHostsAreCountedApart(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	script := write(t, `
		import http from 'k6/http';
		export const options = { iterations: 5 };
		export default function () {
			http.get(__ENV.TARGET + '/', { tags: { name: 'list' } });
			http.get(__ENV.TARGET.replace('127.0.0.1', 'localhost') + '/');
			http.get(__ENV.OTHER + '/');
			http.get(__ENV.OTHER + '/', { tags: { name: 'list' } });
			http.get('http://nobody.invalid/');
		}`)
	out, _ := own(t, []string{"TARGET=" + server.URL}, script, "--env=OTHER="+other.URL)
	p, hosts := out.result.Phases["measured"], out.result.Script.OtherHosts
	if p.Requests != 10 || p.Responses != 10 || p.Endpoints["list"].Requests != 5 || server.requests.Load() != 10 {
		t.Errorf("%+v, the server saw %d", p, server.requests.Load())
	}
	there := hosts[strings.TrimPrefix(other.URL, "http://")]
	if len(hosts) != 2 || *there != (result.HostCount{Requests: 10, Errors: 10}) || hosts["nobody.invalid:80"].Errors != 5 {
		t.Errorf("%+v", hosts)
	}
}

// Parts of metrics by scenarios and the script's own tags are kept without a threshold, and are those of k6 itself.
func TestScenariosAndTagsAreToldApart(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	const source = `
		import http from 'k6/http';
		import { check } from 'k6';
		import { Trend } from 'k6/metrics';
		const sizes = new Trend('sizes');
		export const options = { tags: { everywhere: 'same' }, scenarios: {
			browse: { executor: 'per-vu-iterations', vus: 1, iterations: 5, exec: 'browse' },
			buy: { executor: 'per-vu-iterations', vus: 1, iterations: 3, exec: 'buy', tags: { team: 'shop' } },
		}%s };
		export function browse() { http.get(__ENV.TARGET + '/', { tags: { kind: 'static' } }); sizes.add(1, { kind: 'small' }); sizes.add(9); }
		export function buy() { check(http.get(__ENV.TARGET + '/'), { right: (a) => a.status === 200 }); }`
	names := []string{
		"iterations{scenario:browse}", "iterations{scenario:buy}", "iterations{team:shop}", "iteration_duration{scenario:buy}",
		"http_req_duration{kind:static}", "http_req_duration{scenario:buy}", "http_req_failed{team:shop}", "sizes{kind:small}", "sizes{scenario:browse}",
		"checks{team:shop}",
	}
	out, _ := own(t, []string{"TARGET=" + server.URL}, write(t, fmt.Sprintf(source, "")))
	said := out.result.Script
	for name, samples := range map[string]int64{
		"iterations{scenario:browse}": 5, "iterations{scenario:buy}": 3, "http_req_duration{kind:static}": 5,
		"http_req_duration{scenario:buy}": 3, "sizes{kind:small}": 5, "sizes{scenario:browse}": 10, "checks{team:shop}": 3,
	} {
		if one := said.Metrics[name]; one == nil || one.Samples != samples {
			t.Errorf("%s: %+v", name, one)
		}
	}
	for name := range said.Metrics {
		if strings.Contains(name, "everywhere") || strings.Contains(name, "expected_response") || strings.HasPrefix(name, "http_req_waiting") {
			t.Errorf("%s is kept", name)
		}
	}
	if said.PartsLeftOut {
		t.Error("parts are left out")
	}
	// With thresholds on them k6 has the same parts in its own summary.
	var thresholds []string
	for _, name := range names {
		expression := "avg>=0"
		switch {
		case strings.HasPrefix(name, "iterations"):
			expression = "count>0"
		case strings.HasPrefix(name, "checks"), strings.HasPrefix(name, "http_req_failed"):
			expression = "rate>=0"
		}
		thresholds = append(thresholds, fmt.Sprintf("%q: [%q]", name, expression))
	}
	out, k6s := own(t, []string{"TARGET=" + server.URL}, write(t, fmt.Sprintf(source, ", thresholds: {"+strings.Join(thresholds, ", ")+"}")))
	compareMetrics(t, out.result.Script, k6s)
	for _, name := range names {
		if out.result.Script.Metrics[name] == nil || k6s[name].Thresholds == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

// What is scraped of a script while it runs are the counts of its result.
func TestAScriptIsShownWhileItRuns(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	script := write(t, `
		import http from 'k6/http';
		import { sleep } from 'k6';
		export const options = { scenarios: {
			warmup: { executor: 'per-vu-iterations', vus: 1, iterations: 1, exec: 'warm' },
			own: { executor: 'per-vu-iterations', vus: 1, iterations: 1, startTime: '100ms' },
		} };
		export function warm() { http.get(__ENV.TARGET + '/', { tags: { name: 'list' } }); }
		export default function () {
			for (let i = 0; i < 40; i++) { http.get(__ENV.TARGET + '/', { tags: { name: 'list' } }); }
			http.get(__ENV.TARGET + '/bad', { tags: { name: 'bad' } });
			sleep(3);
			http.get(__ENV.TARGET + '/', { tags: { name: 'list' } });
		}`)
	address := freeport.Address(t)
	wanted := []string{
		"laptime_generator_requests_total{endpoint=\"list\",phase=\"measured\"} 40", "laptime_generator_requests_total{endpoint=\"bad\",phase=\"measured\"} 1",
		"laptime_generator_requests_total{endpoint=\"list\",phase=\"warmup\"} 1", "laptime_generator_errors_total{kind=\"status\",phase=\"measured\"} 1",
		"laptime_generator_phase{phase=\"measured\"} 1", "laptime_generator_latency_seconds_count{endpoint=\"list\",phase=\"measured\"} 40",
	}
	missing := wanted
	out := k6(t, []string{"TARGET=" + server.URL, "LAPTIME_METRICS_ADDRESS=" + address}, func(*os.Process) {
		for deadline := time.Now().Add(15 * time.Second); len(missing) > 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			answer, err := http.Get("http://" + address + "/metrics")
			if err != nil {
				continue
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			missing = slices.DeleteFunc(slices.Clone(wanted), func(line string) bool { return strings.Contains(string(text), line) })
		}
	}, script)
	if len(missing) > 0 || out.result == nil || out.result.Phases["measured"].Requests != 42 {
		t.Errorf("missing: %q\n%s\n%s", missing, out.stdout, out.stderr)
	}
	if _, err := http.Get("http://" + address + "/metrics"); err == nil {
		t.Error("it is shown after its end")
	}
}

// A threshold that ends the run early leaves what was measured, and says so.
func TestAThresholdThatAbortsIsTold(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	script := write(t, `
		import http from 'k6/http';
		import { sleep } from 'k6';
		export const options = { vus: 1, duration: '60s', thresholds: {
			http_req_duration: [{ threshold: 'max<0.0001', abortOnFail: true }] } };
		export default function () { http.get(__ENV.TARGET + '/'); sleep(0.1); }`)
	out, _ := own(t, []string{"TARGET=" + server.URL}, script)
	if said := out.result.Script; !said.Aborted || said.Thresholds[0].Met || out.took > 30*time.Second {
		t.Errorf("%+v after %s", said, out.took)
	}
}

// An archive of `k6 archive` is a script in one file, with all that it imports and opens.
func TestAnArchiveRunsAsItsScript(t *testing.T) {
	t.Parallel()
	server, seen := watched(t)
	script := write(t, `
		import http from 'k6/http';
		import { path } from './path.js';
		const data = JSON.parse(open('./data.json'));
		export const options = { vus: 3, iterations: 30 };
		export function setup() { return 'told'; }
		export default function (word) { http.get(__ENV.BASE_URL + path(data[word]) + '?by=' + __ENV.TARGET); }`)
	folder := filepath.Dir(script)
	for name, text := range map[string]string{"path.js": "export const path = (name) => '/' + name;", "data.json": `{"told": "right"}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(t.TempDir(), "script.tar")
	// Where it was made another address was known.
	command := exec.Command(binary, "archive", "--archive-out="+archive, "--env=BASE_URL=http://127.0.0.1:1", script)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	environment := []string{"TARGET=" + server.URL}
	one, _ := own(t, environment, archive, "--env=BASE_URL="+server.URL, "--iterations=20")
	if measured := one.result.Phases["measured"]; measured.Requests != 20 || measured.Responses != 20 || len(seen.at["/right"]) != 20 {
		t.Errorf("%+v, the server saw %d", measured, len(seen.at["/right"]))
	}
	if seen.by["/right"][0] != server.URL {
		t.Errorf("TARGET was %q", seen.by["/right"][0])
	}
	sum := int64(0)
	for _, out := range shared(t, 2, environment, archive, "--env=BASE_URL="+server.URL) {
		if out.result == nil {
			t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
		}
		sum += out.result.Phases["measured"].Requests
	}
	if sum != 30 || len(seen.at["/right"]) != 50 {
		t.Errorf("%d requests, the server saw %d", sum, len(seen.at["/right"]))
	}
}

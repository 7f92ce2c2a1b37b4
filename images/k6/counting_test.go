package main

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"laptime.dev/k6/internal/freeport"
	"laptime.dev/k6/internal/result"
)

// What nobody catches in a promise ends an iteration as what is thrown does.
func TestRejectedPromisesAreExceptions(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"async":      `export default async function () { throw new Error('wrong'); }`,
		"after":      `export default async function () { await Promise.resolve(); throw new Error('wrong'); }`,
		"unhandled":  `export default function () { Promise.reject(new Error('wrong')); }`,
		"no error":   `export default async function () { throw 'wrong'; }`,
		"inner":      `async function ask() { throw new Error('wrong'); } export default function () { ask(); }`,
		"a callback": `export default function () { setTimeout(() => { throw new Error('wrong'); }, 1); }`,
		"exec":       `export async function named() { throw new Error('wrong'); }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario := `own: { executor: 'per-vu-iterations', vus: 2, iterations: 10 }`
			if name == "exec" {
				scenario = `own: { executor: 'per-vu-iterations', vus: 2, iterations: 10, exec: 'named' }`
			}
			out, _ := own(t, nil, write(t, fmt.Sprintf(`export const options = { scenarios: { %s } }; %s`, scenario, body)))
			said, thrown := out.result.Script, int64(0)
			for text, count := range said.Exceptions {
				thrown += count
				if !strings.Contains(text, "wrong") {
					t.Errorf("%q", text)
				}
			}
			if said.Iterations != 20 || thrown != 20 || len(said.Exceptions) != 1 {
				t.Errorf("%d iterations, exceptions %v\n%s", said.Iterations, said.Exceptions, out.stderr)
			}
		})
	}
}

// What a promise that is caught was rejected with is no exception, nor is what a script writes to its console.
func TestCaughtRejectionsAreNoExceptions(t *testing.T) {
	t.Parallel()
	out, _ := own(t, nil, write(t, `
		export const options = { iterations: 5 };
		export default async function () {
			try { await Promise.reject(new Error('caught')); } catch (e) { console.error('Uncaught (in promise) ' + e); }
		}`))
	if said := out.result.Script; said.Iterations != 5 || len(said.Exceptions) != 0 {
		t.Errorf("%d iterations, exceptions %v", said.Iterations, said.Exceptions)
	}
}

// A script may call its groups as k6 calls what setup() and teardown() do.
func TestGroupsNamedAsSetupAreLoad(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wrong" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	out, _ := own(t, []string{"TARGET=" + server.URL}, write(t, `
		import http from 'k6/http';
		import { group } from 'k6';
		export const options = { iterations: 10, tags: { scenario: 'nightly' } };
		export function setup() { http.get(__ENV.TARGET + '/once'); group('inner', () => http.get(__ENV.TARGET + '/once')); }
		export function teardown() { http.get(__ENV.TARGET + '/once'); }
		export default function () {
			group('setup', () => http.get(__ENV.TARGET + '/wrong'));
			group('teardown', () => group('inner', () => http.get(__ENV.TARGET + '/right')));
			http.get(__ENV.TARGET + '/right');
		}`))
	phases := out.result.Phases
	if p := phases["measured"]; p.Requests != 30 || p.Errors["status"] != 10 {
		t.Errorf("%d requests, errors %v", p.Requests, p.Errors)
	}
	if phases["setup"].Requests != 2 || phases["teardown"].Requests != 1 {
		t.Errorf("setup %+v, teardown %+v", phases["setup"], phases["teardown"])
	}
}

// A script may give the tag another value while it runs: what it does is its scenario's all the same.
func TestAScenarioThatIsTaggedOtherwiseIsLoad(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	out, _ := own(t, []string{"TARGET=" + server.URL}, write(t, `
		import http from 'k6/http';
		import exec from 'k6/execution';
		export const options = { iterations: 10 };
		export function setup() { http.get(__ENV.TARGET + '/once'); }
		export default function () {
			exec.vu.metrics.tags.scenario = 'browse';
			http.get(__ENV.TARGET + '/right');
		}`))
	p := out.result.Phases["measured"]
	if p.Requests != 10 || out.result.Phases["setup"].Requests != 1 {
		t.Errorf("measured %d requests, setup %d", p.Requests, out.result.Phases["setup"].Requests)
	}
	if out.result.Generator.WallSeconds <= 0 {
		t.Errorf("the measured part took no time: %+v", out.result.Generator)
	}
}

// What tells phases, endpoints and errors apart are k6's tags, whichever of them the script wants.
func TestTheTagsThatCountingNeedsAreThere(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wrong" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	// No port that was free: another test may take it meanwhile.
	const nobody = "http://127.0.0.1:1"
	const source = `
		import http from 'k6/http';
		import { check, group } from 'k6';
		http.setResponseCallback(null);
		export const options = { systemTags: %s, scenarios: {
			warmup: { executor: 'per-vu-iterations', vus: 1, iterations: 3, exec: 'warm' },
			own: { executor: 'per-vu-iterations', vus: 1, iterations: 5, startTime: '1s' },
		} };
		export function setup() { http.get(__ENV.TARGET + '/once'); }
		export function warm() { http.get(__ENV.TARGET + '/'); }
		export default function () {
			check(http.get(__ENV.TARGET + '/', { tags: { name: 'list' } }), { right: (a) => a.status === 200 });
			http.get(__ENV.TARGET + '/wrong');
			http.get(__ENV.NOBODY + '/');
		}`
	for _, wanted := range []string{`[]`, `['proto', 'ip']`, `['url']`} {
		script := write(t, fmt.Sprintf(source, wanted))
		for _, environment := range [][]string{{"TARGET=" + server.URL}, {"TARGET=" + nobody}} {
			out, _ := own(t, environment, script, "--env=NOBODY="+nobody)
			phases, said := out.result.Phases, out.result.Script
			if phases["setup"].Requests+phases["warmup"].Requests == 0 || said.Warmup != "scenario" || said.Iterations != 5 {
				t.Fatalf("%s: %+v", wanted, phases)
			}
			p := phases["measured"]
			if environment[0] != "TARGET="+nobody {
				if p.Requests != 10 || p.Endpoints["list"].Requests != 5 || said.OtherHosts[strings.TrimPrefix(nobody, "http://")].Errors != 5 || said.Checks["right"].Passed != 5 {
					t.Errorf("%s: %+v, others %v, checks %v", wanted, p, said.OtherHosts, said.Checks)
				}
			} else if p.Requests != 15 || p.Errors["connect"] != 15 {
				t.Errorf("%s: %d requests, errors %v", wanted, p.Requests, p.Errors)
			}
		}
	}
}

// The status tells which calls of gRPC were right, also where the script does not want it as a tag.
func TestCallsOfGRPCHaveTheirStatus(t *testing.T) {
	t.Parallel()
	address := speakGRPC(t, "testdata/echo.proto")
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := own(t, []string{"TARGET=http://" + address}, write(t, fmt.Sprintf(`
		import grpc from 'k6/net/grpc';
		const client = new grpc.Client();
		client.load([%q], 'echo.proto');
		export const options = { iterations: 20, systemTags: ['method'] };
		export default function () {
			if (__ITER === 0) { client.connect(__ENV.GRPC_ADDR, { plaintext: true }); }
			client.invoke('echo.Echo/Say', { text: 'a' }, { metadata: { 'x-status': '5' } });
		}`, folder+"/testdata")), "--env=GRPC_ADDR="+address)
	if p := out.result.Phases["measured"]; p.Requests != 20 || p.Errors["status"] != 20 {
		t.Errorf("%d requests, errors %v", p.Requests, p.Errors)
	}
}

// However much a script measures, its trial has figures.
func TestManyTrendsOfVeryDifferentValuesFit(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	out, _ := own(t, []string{"TARGET=" + server.URL}, write(t, `
		import http from 'k6/http';
		import { Trend } from 'k6/metrics';
		const all = Array.from({ length: 24 }, (_, i) => new Trend('trend_' + i));
		export const options = { vus: 1, iterations: 250, thresholds: { trend_7: ['p(95)>0'] } };
		export default function () {
			for (let i = 0; i < 12; i++) { http.get(__ENV.TARGET + '/', { tags: { name: 'name ' + i } }); }
			for (const one of all) { for (let i = 0; i < 100; i++) { one.add(Math.exp(Math.random() * 20)); } }
		}`))
	line := ""
	for one := range strings.Lines(out.stdout) {
		if strings.HasPrefix(one, result.LinePrefix) {
			line = one
		}
	}
	kept := 0
	for _, one := range out.result.Script.Metrics {
		if one.Type == "trend" && one.Cells != nil {
			kept++
		}
	}
	if len(line) > 900_000 || len(out.result.Phases["measured"].Endpoints) != 12 || kept < 3 || kept >= 24 || out.result.Script.Metrics["trend_7"].Cells == nil {
		t.Errorf("%d characters, %d trends", len(line), kept)
	}
}

// After a warm-up by name counters are divided by what came after it, and so is the CPU time of the generator.
func TestWhatIsBeforeTheMeasuredScenariosIsNoTimeOfTheirs(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	address := freeport.Address(t)
	script := write(t, `
		import http from 'k6/http';
		import { sleep } from 'k6';
		import { Counter } from 'k6/metrics';
		const done = new Counter('done');
		export const options = { scenarios: {
			warmup: { executor: 'constant-vus', vus: 1, duration: '2s', exec: 'warm', gracefulStop: '1s' },
			own: { executor: 'constant-arrival-rate', rate: 20, duration: '2s', preAllocatedVUs: 4, startTime: '3s' },
		}, thresholds: { done: ['rate>15'] } };
		export function setup() { http.get(__ENV.TARGET + '/once'); sleep(2); }
		export function warm() { http.get(__ENV.TARGET + '/'); sleep(0.1); }
		export default function () {
			http.get(__ENV.TARGET + '/');
			done.add(1);
			if (__ENV.BURN) { for (const until = Date.now() + 20; Date.now() < until;) {} }
		}
		export function teardown() { sleep(2); http.get(__ENV.TARGET + '/once'); }`)
	shown := map[string]time.Time{}
	out := k6(t, []string{"TARGET=" + server.URL, "LAPTIME_METRICS_ADDRESS=" + address}, func(*os.Process) {
		// Until both were shown: on a full machine k6 takes its time to start.
		for deadline := time.Now().Add(30 * time.Second); len(shown) < 2 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			answer, err := http.Get("http://" + address + "/metrics")
			if err != nil {
				continue
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			for _, phase := range []string{"warmup", "measured"} {
				if _, seen := shown[phase]; !seen && strings.Contains(string(text), fmt.Sprintf("laptime_generator_phase{phase=%q} 1", phase)) {
					shown[phase] = time.Now()
				}
			}
		}
	}, script)
	if out.result == nil {
		t.Fatalf("%s\n%s", out.stdout, out.stderr)
	}
	said := out.result.Script
	// teardown() belongs to what counts, as k6 has it; with what is before it would be 9 s. An arrival that is due while
	// nothing runs may find no VU.
	if said.Seconds < 3.5 || said.Seconds > 7 || said.Iterations < 30 {
		t.Errorf("%d iterations in %v s", said.Iterations, said.Seconds)
	}
	if one := said.Thresholds[0]; math.Abs(one.Value*said.Seconds-float64(said.Iterations)) > 0.5 {
		t.Errorf("%+v", one)
	}
	if wall := out.result.Generator.WallSeconds; wall < 1 || wall > 4 {
		t.Errorf("the measured phase of 2 s took %v s", wall)
	}
	if apart := shown["measured"].Sub(shown["warmup"]); shown["warmup"].IsZero() || apart < time.Second {
		t.Errorf("shown %v", shown)
	}
}

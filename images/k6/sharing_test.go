package main

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"laptime.dev/k6/internal/freeport"
)

// shared runs a script in several generators at once, as the pods of an Indexed Job do.
func shared(t *testing.T, count int, environment []string, script string, flags ...string) []outcome {
	t.Helper()
	meet := freeport.Address(t)
	outcomes := make([]outcome, count)
	var all sync.WaitGroup
	for index := range count {
		all.Go(func() {
			own := slices.Concat(environment, []string{
				"LAPTIME_GENERATORS=" + strconv.Itoa(count), "JOB_COMPLETION_INDEX=" + strconv.Itoa(index), "LAPTIME_MEET=" + meet,
				"LAPTIME_WAIT_SECONDS=20", "LAPTIME_TRIAL_NAME=demo-trial-001", "K6_ADDRESS=" + freeport.Address(t),
			})
			outcomes[index] = k6(t, own, nil, append(slices.Clone(flags), script)...)
		})
	}
	all.Wait()
	return outcomes
}

// seen is what a server saw of a script.
type seen struct {
	sync.Mutex
	at map[string][]time.Time
	by map[string][]string
}

// watched serves what notes when each path was asked, and by whom.
func watched(t *testing.T) (*target, *seen) {
	t.Helper()
	s := &seen{at: map[string][]time.Time{}, by: map[string][]string{}}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		s.Lock()
		defer s.Unlock()
		s.at[r.URL.Path] = append(s.at[r.URL.Path], time.Now())
		s.by[r.URL.Path] = append(s.by[r.URL.Path], r.FormValue("by"))
		_, _ = w.Write([]byte("[]"))
	}), s
}

// Three generators have the load of one: each iteration once, setup() and teardown() once, all from one start.
func TestGeneratorsShareAScript(t *testing.T) {
	const count, iterations = 3, 61
	server, seen := watched(t)
	script := write(t, fmt.Sprintf(`
		import http from 'k6/http';
		import exec from 'k6/execution';
		import { sleep } from 'k6';
		import { Trend } from 'k6/metrics';
		const mine = new Trend('mine');
		export const options = { scenarios: { default: { executor: 'shared-iterations', vus: 7, iterations: %d } },
			thresholds: { mine: ['max<%d'] } };
		export function setup() { http.get(__ENV.TARGET + '/setup'); return { token: 'a "b"', large: 9007199254740991, none: null }; }
		export default function (data) {
			const right = data.token === 'a "b"' && data.large === 9007199254740991 && data.none === null;
			http.get(__ENV.TARGET + (right ? '/right' : '/wrong') + '?by=' + exec.scenario.iterationInTest);
			mine.add(exec.scenario.iterationInTest);
			sleep(0.02);
		}
		export function teardown(data) { http.get(__ENV.TARGET + '/teardown?by=' + encodeURIComponent(data.token)); }`,
		iterations, iterations))
	outcomes := shared(t, count, []string{"TARGET=" + server.URL}, script)
	for index, out := range outcomes {
		if out.result == nil {
			t.Fatalf("generator %d: exit code %d\n%s\n%s", index, out.code, out.stdout, out.stderr)
		}
	}
	numbers := map[string]bool{}
	for _, one := range seen.by["/right"] {
		numbers[one] = true
	}
	if len(seen.at["/setup"]) != 1 || len(seen.at["/teardown"]) != 1 || !slices.Equal(seen.by["/teardown"], []string{`a "b"`}) {
		t.Errorf("setup %v, teardown %v by %q", seen.at["/setup"], seen.at["/teardown"], seen.by["/teardown"])
	}
	if len(seen.by["/right"]) != iterations || len(numbers) != iterations || len(seen.at["/wrong"]) != 0 {
		t.Errorf("%d iterations of %d numbers, %d without the data of setup()", len(seen.by["/right"]), len(numbers), len(seen.at["/wrong"]))
	}
	if len(seen.at["/right"]) == 0 || len(seen.at["/teardown"]) == 0 {
		t.FailNow()
	}
	if last := slices.MaxFunc(seen.at["/right"], time.Time.Compare); seen.at["/teardown"][0].Before(last) {
		t.Error("teardown() ran before the last iteration")
	}
	var sum, began, apart float64
	soonest := math.Inf(1)
	setups := 0
	for index, out := range outcomes {
		measured := out.result.Phases["measured"]
		sum += float64(measured.Requests)
		if out.result.Segment.Index != index || out.result.Segment.Count != count || measured.Requests < 10 {
			t.Errorf("generator %d: %+v, %d requests", index, out.result.Segment, measured.Requests)
		}
		if phase := out.result.Phases["setup"]; phase != nil {
			setups += int(phase.Requests)
		}
		if index == 0 {
			began = out.result.Segment.StartedAt
		}
		apart = max(apart, math.Abs(out.result.Segment.StartedAt-began))
		// When a request began follows from its end and the parts that k6 took the time of, one by one: to a few milliseconds.
		late := measured.FirstRequestAt - out.result.Segment.StartedAt
		soonest = min(soonest, late)
		if late < -0.01 || late > 3 || measured.StartedAt > measured.FirstRequestAt {
			t.Errorf("generator %d sent its first request %v s after the start, its phase began at %v", index, late, measured.StartedAt)
		}
	}
	if sum != iterations || setups != 1 || apart > 0.1 || soonest > 0.5 {
		t.Errorf("%v requests, setup was asked %d times, starts are %v s apart, the first request came after %v s", sum, setups, apart, soonest)
	}
}

// enough repeats a load until so many requests were due: a machine that stands still for a moment loses some of them, a
// fault loses them each time.
func enough(t *testing.T, least int64, try func() int64) {
	t.Helper()
	most := int64(0)
	for range 3 {
		if most = max(most, try()); most >= least || t.Failed() {
			return
		}
	}
	t.Errorf("%d requests at most, three times, expected %d", most, least)
}

// A rate of arrivals is divided without rounding, and a bound on requests as well; the warm-up is cut off at one moment.
func TestGeneratorsShareRates(t *testing.T) {
	// k6 neither runs nor counts as dropped what is due in a moment that is over the end.
	enough(t, 119, func() int64 {
		server, seen := watched(t)
		script := write(t, `
			import http from 'k6/http';
			export const options = { scenarios: { one: { executor: 'constant-arrival-rate', rate: 40, duration: '3s', preAllocatedVUs: 10, startTime: '500ms' } } };
			export default function () { http.get(__ENV.TARGET + '/one'); }`)
		outcomes := shared(t, 3, []string{"TARGET=" + server.URL, "LAPTIME_WARMUP_SECONDS=1"}, script)
		var warm, measured, dropped int64
		var cutAt float64
		for index, out := range outcomes {
			if out.result == nil {
				t.Fatalf("generator %d: exit code %d\n%s\n%s", index, out.code, out.stdout, out.stderr)
			}
			warm += out.result.Phases["warmup"].Requests
			measured += out.result.Phases["measured"].Requests
			for _, phase := range out.result.Phases {
				dropped += phase.DroppedIterations
			}
			cutAt = out.result.Phases["measured"].StartedAt
			if cut := out.result.Phases["measured"].StartedAt - out.result.Segment.StartedAt; math.Abs(cut-1.5) > 0.001 {
				t.Errorf("generator %d measures from %v s after the start on", index, cut)
			}
		}
		early := int64(0)
		for _, at := range seen.at["/one"] {
			if float64(at.UnixMicro())/1e6 < cutAt {
				early++
			}
		}
		const vus = 10 // of which each may be under way at the cut
		total := int64(len(seen.at["/one"]))
		if warm+measured != total || total+dropped > 121 || warm == 0 || max(early-warm, warm-early) > vus {
			t.Errorf("%d requests, %d dropped, %d in the warm-up, %d measured, %d came before the cut", total, dropped, warm, measured, early)
		}
		return total + dropped
	})
}

// What ends one generator early ends all.
func TestAThresholdThatAbortsEndsAllGenerators(t *testing.T) {
	t.Parallel()
	server, seen := watched(t)
	script := write(t, `
		import http from 'k6/http';
		import exec from 'k6/execution';
		import { check, sleep } from 'k6';
		export const options = { vus: 4, duration: '60s', thresholds: { checks: [{ threshold: 'rate>0.9', abortOnFail: true }] } };
		export default function () {
			http.get(__ENV.TARGET + '/one');
			check(1, { 'all but one': () => exec.vu.idInTest != 2 || exec.vu.iterationInInstance < 20 });
			sleep(0.05);
		}
		export function teardown() { http.get(__ENV.TARGET + '/teardown'); }`)
	outcomes := shared(t, 2, []string{"TARGET=" + server.URL}, script)
	for index, out := range outcomes {
		if out.result == nil || !out.result.Script.Aborted || out.took > 40*time.Second {
			t.Errorf("generator %d after %s: %+v\n%s\n%s", index, out.took, out.result, out.stdout, out.stderr)
		}
	}
	if len(seen.at["/teardown"]) != 1 {
		t.Errorf("teardown %v", seen.at["/teardown"])
	}
}

// An exception in setup() ends the one generator that ran it as k6 ends, with its words and the line.
func TestAnExceptionInSetupOfSeveralGenerators(t *testing.T) {
	t.Parallel()
	script := write(t, `
		export function setup() {
			throw new Error('no log-in');
		}
		export default function () {}`)
	out := shared(t, 1, nil, script)[0] // alone it is k6's own doing
	if out.code != 107 || !strings.Contains(out.stderr, "no log-in") {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
	two := shared(t, 2, nil, script)
	if said := two[0].stderr; two[0].code != 107 || !strings.Contains(said, "Error: no log-in") || !strings.Contains(said, "own.js:3:") {
		t.Errorf("exit code %d\n%s", two[0].code, said)
	}
	if two[1].result != nil || !strings.Contains(two[1].stdout, "GeneratorsIncomplete") {
		t.Errorf("%s\n%s", two[1].stdout, two[1].stderr)
	}
}

// Fewer VUs than generators leave some without work, which is no fault.
func TestAGeneratorWithoutWork(t *testing.T) {
	t.Parallel()
	server, seen := watched(t)
	script := write(t, `
		import http from 'k6/http';
		export const options = { vus: 1, iterations: 5 };
		export default function () { http.get(__ENV.TARGET + '/one'); }`)
	var sum int64
	for index, out := range shared(t, 2, []string{"TARGET=" + server.URL}, script) {
		if out.result == nil {
			t.Fatalf("generator %d: exit code %d\n%s\n%s", index, out.code, out.stdout, out.stderr)
		}
		sum += out.result.Phases["measured"].Requests
	}
	if sum != 5 || len(seen.at["/one"]) != 5 {
		t.Errorf("%d requests, the server saw %v", sum, slices.Collect(maps.Keys(seen.at)))
	}
}

// A bound on requests per second is divided where the run says it, and refused where the script does.
func TestABoundOnRequestsIsShared(t *testing.T) {
	source := `
		import http from 'k6/http';
		export const options = { %s vus: 10, duration: '3s' };
		export default function () { http.get(__ENV.TARGET + '/one'); }`
	enough(t, 50, func() int64 {
		server, seen := watched(t)
		for index, out := range shared(t, 2, []string{"TARGET=" + server.URL}, write(t, fmt.Sprintf(source, "")), "--rps=21") {
			if out.result == nil {
				t.Fatalf("generator %d: exit code %d\n%s\n%s", index, out.code, out.stdout, out.stderr)
			}
		}
		// Each VU may have one more that is due when the time is over.
		total := int64(len(seen.at["/one"]))
		if total > 63+10+5 {
			t.Errorf("%d requests in 3 s at 21 a second", total)
		}
		return total
	})
	server, _ := watched(t)
	out := shared(t, 2, []string{"TARGET=" + server.URL}, write(t, fmt.Sprintf(source, "rps: 20,")))[1]
	if out.result != nil || !strings.Contains(out.stderr, "write options.rate in the run") {
		t.Errorf("%+v\n%s", out.result, out.stderr)
	}
}

// Where the operator's words are wrong nothing is sent.
func TestAPlaceThatIsNone(t *testing.T) {
	t.Parallel()
	script := write(t, `export default function () {}`)
	for _, wrong := range []string{"LAPTIME_GENERATORS=many", "JOB_COMPLETION_INDEX=3", "LAPTIME_MEET="} {
		environment := []string{"LAPTIME_GENERATORS=3", "JOB_COMPLETION_INDEX=0", "LAPTIME_MEET=nobody:1", "LAPTIME_WAIT_SECONDS=1"}
		out := k6(t, append(environment, wrong), nil, script)
		name, _, _ := strings.Cut(wrong, "=")
		if out.code != 4 || out.result != nil || !strings.Contains(out.stdout, "InvalidTrial") || !strings.Contains(out.stdout, name) {
			t.Errorf("%s: exit code %d\n%s", wrong, out.code, out.stdout)
		}
	}
}

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"laptime.dev/k6/internal/result"
)

// Every way in which a script can be wrong ends soon, with k6's own words and the line, and never with figures
// that hide it.
func TestBadScriptsAreTold(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	const imports = `import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';`
	for name, c := range map[string]struct {
		source      string // beginning with its second line
		environment []string
		says        string // in k6's log, or in a line of ours; empty: the result says it
		code        int
		result      func(*result.Result) bool
	}{
		"syntax":      {source: "export default function () { let 1a; }", code: 107, says: `own\.js: Line 2:\d+ Unexpected token`},
		"init":        {source: "throw new Error('no init');\nexport default function () {}", code: 107, says: `Error: no init.*own\.js:2:`},
		"no function": {source: "export const options = { vus: 1 };", code: 255, says: `function 'default' not found in exports|no exported functions`},
		"init of a later VU": {source: "if (__VU === 1) { throw new Error('no VU'); }\nexport default function () {}", code: 107,
			says: `Error: no VU.*own\.js:2:`},
		"setup": {source: "export function setup() {\n  null.x;\n}\nexport default function () {}", code: 107, says: `TypeError: .*own\.js:3:`},
		"slow setup": {source: "export const options = { setupTimeout: '1s' };\nexport function setup() { while (true) {} }\nexport default function () {}",
			code: 100, says: `setup\(\) execution timed out after 1 seconds`},
		"teardown": {source: "export function teardown() { undefined.x; }\nexport default function () {}", code: 107, says: `TypeError: .*own\.js:2:`},
		"an iteration": {source: "export const options = { vus: 5, iterations: 1000 };\nexport default function () {\n" +
			"  if (exec.scenario.iterationInTest === 500) { JSON.parse('<'); }\n}",
			result: func(r *result.Result) bool {
				for text, count := range r.Script.Exceptions {
					return count == 1 && len(r.Script.Exceptions) == 1 && strings.Contains(text, "SyntaxError") && strings.Contains(text, "own.js:4:") &&
						r.Script.Iterations == 1000
				}
				return false
			}},
		"every iteration differently": {source: "export const options = { iterations: 200 };\nexport default function () { throw new Error(`no ${exec.scenario.iterationInTest}`); }",
			result: func(r *result.Result) bool { return len(r.Script.Exceptions) == 10 && r.Script.MoreExceptions == 190 }},
		"an endless start": {source: "while (true) {}\nexport default function () {}", environment: []string{"LAPTIME_READING_SECONDS=1"},
			code: 107, says: `ScriptFailed.*reading the script has not come to its end`},
		"an endless iteration": {source: "export const options = { scenarios: { one: { executor: 'constant-vus', vus: 1, duration: '1s', gracefulStop: '1s' } } };\n" +
			"export default function () { while (true) {} }", says: `No script iterations fully finished`,
			result: func(r *result.Result) bool { return r.Script.Iterations == 0 && r.Phases["measured"].Requests == 0 }},
		"an iteration that goes on": {source: "export default function () { sleep(600); }", environment: []string{"LAPTIME_DURATION_SECONDS=0.5", "LAPTIME_GRACE_SECONDS=1"},
			code: 102, says: `GeneratorTimedOut.*still running 1 s after the end of its duration`},
		"memory": {source: "const kept = [];\nexport const options = { vus: 1, duration: '60s' };\n" +
			"export default function () { for (let i = 0; i < 1000; i++) { kept.push('x'.repeat(10000) + kept.length); } }",
			environment: []string{"LAPTIME_MEMORY_BYTES=400000000"}, code: 107, says: `ScriptFailed.*the script used \d+ MiB of memory, and 381 MiB are`},
		"URLs": {source: "export const options = { vus: 4, iterations: 3000 };\nexport default function () { http.get(`${__ENV.TARGET}/${exec.scenario.iterationInTest}`); }",
			result: func(r *result.Result) bool {
				p := r.Phases["measured"]
				return p.Requests == 3000 && len(p.Endpoints) == 201 && p.Endpoints["other"].Requests == 2800
			}},
		"tags": {source: "const c = new Counter('counted');\nexport const options = { vus: 4, iterations: 1000 };\n" +
			"export default function () { for (let i = 0; i < 100; i++) { c.add(1, { one: `${exec.scenario.iterationInTest}-${i}` }); } }",
			says:   `The test has generated metrics with 1000\d\d unique time series`,
			result: func(r *result.Result) bool { return r.Script.Metrics["counted"].Sum == 100_000 }},
		"abort":          {source: "export default function () { exec.test.abort('enough'); }", code: 108, says: `test aborted: enough`},
		"fail":           {source: "export default function () { exec.test.fail('wrong'); }", code: 110, says: `test run was marked as failed`},
		"missing file":   {source: "open('./nowhere.json');\nexport default function () {}", code: 107, says: `nowhere\.json.*own\.js:2:`},
		"missing module": {source: "import './nowhere.js';\nexport default function () {}", code: 107, says: `nowhere\.js`},
		"k6 module":      {source: "import x from 'k6/x/nothing';\nexport default function () {}", code: 107, says: `k6/x/nothing`},
		"wrong value":    {source: "export const options = { vus: 'many' };\nexport default function () {}", code: 104, says: `many|vus`},
		"unknown option": {source: "export const options = { vuss: 7 };\nexport default function () {}", says: `unknown field.*vuss`,
			result: func(r *result.Result) bool { return true }},
		"wrong threshold": {source: "export const options = { thresholds: { http_req_duration: ['p(95) is 3'] } };\nexport default function () {}", code: 104,
			says: `p\(95\) is 3`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := write(t, imports+"\n"+c.source)
			out := k6(t, slices.Concat([]string{"TARGET=" + server.URL, "LAPTIME_WARMUP_SECONDS=0"}, c.environment), nil, script)
			if out.code != c.code || c.result == nil && out.took > 40*time.Second || (out.result != nil) != (c.result != nil) {
				t.Errorf("exit code %d after %s, result: %v\n%.2000s\n%.2000s", out.code, out.took, out.result != nil, out.stdout, out.stderr)
			}
			if found, err := regexp.MatchString(c.says, out.stdout+out.stderr); err != nil || !found {
				t.Errorf("%v: not said: %s\n%.2000s\n%.2000s", err, c.says, out.stdout, out.stderr)
			}
			if out.result != nil && c.result != nil && !c.result(out.result) {
				t.Errorf("%+v\n%+v", out.result.Script, out.result.Phases["measured"])
			}
			if folder := os.Getenv("LAPTIME_KEEP_LOGS"); folder != "" {
				_ = os.WriteFile(filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".log"), []byte(out.stderr+out.stdout), 0o600)
			}
		})
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"laptime.dev/k6/internal/freeport"
	"laptime.dev/k6/internal/result"
)

var binary string

// TestMain builds the program once; the tests run it as the Jobs of a trial do.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "laptime-k6-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(folder, "k6")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("go build: %v\n%s", err, output))
	}
	// What is run beside others is k6 in a process of its own, which mostly waits.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

type target struct {
	*httptest.Server
	probes, requests, connections atomic.Int64
}

func serve(t *testing.T, handler http.HandlerFunc) *target {
	t.Helper()
	s := &target{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			s.probes.Add(1)
			return
		}
		s.requests.Add(1)
		handler(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

type outcome struct {
	code           int
	stdout, stderr string
	result         *result.Result // nil when there was no line
	took           time.Duration
}

// k6 runs the program with --out laptime; meanwhile may act on the process while it runs.
func k6(t *testing.T, environment []string, meanwhile func(*os.Process), flagsAndScript ...string) outcome {
	t.Helper()
	command := exec.Command(binary, append(
		[]string{"run", "--quiet", "--no-color", "--out", "laptime", "--summary-mode=disabled"}, flagsAndScript...)...)
	command.Env = append(os.Environ(), environment...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	began := time.Now()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile(command.Process)
	}
	err := command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	out := outcome{command.ProcessState.ExitCode(), stdout.String(), stderr.String(), nil, time.Since(began)}
	for line := range strings.Lines(out.stdout) {
		if !strings.HasPrefix(line, result.LinePrefix) {
			continue
		}
		if out.result != nil {
			t.Fatal("two result lines")
		}
		if out.result, err = result.ParseLine(line); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func trial(t *testing.T, target, load string, more string) []string {
	t.Helper()
	text := fmt.Sprintf(`{"trial":"demo-trial-001","target":%q,"requests":[{"name":"list","method":"GET","path":"/",
		"headers":{"X-One":"1"},"cookies":{"session":"abc"},"body":null,"expectStatus":200}],"load":%s,"timeoutSeconds":5%s}`, target, load, more)
	if !json.Valid([]byte(text)) {
		t.Fatalf("not JSON: %s", text)
	}
	return []string{"LAPTIME_TRIAL=" + text}
}

func decode(t *testing.T, encoded string) *hdrhistogram.Histogram {
	t.Helper()
	h, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestBuiltInTrial(t *testing.T) {
	t.Parallel()
	var wrong atomic.Int64
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("session")
		if err != nil || cookie.Value != "abc" || r.Header.Get("X-One") != "1" || r.URL.Path != "/" {
			wrong.Add(1)
		}
		_, _ = io.WriteString(w, "hello")
	})
	load := `{"closed":{"connections":10,"requests":5000,"durationSeconds":null,"keepAlive":true}}`
	out := k6(t, trial(t, server.URL, load, `,"waitSeconds":5,"warmupSeconds":0.5`), nil, "trial.js")
	if out.code != 0 || out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	lines := strings.Split(strings.TrimSpace(out.stdout), "\n")
	if len(lines) != 2 || lines[0] != "LAPTIME-READY" {
		t.Errorf("standard output:\n%s", out.stdout)
	}
	warm, p := out.result.Phases["warmup"], out.result.Phases["measured"]
	if p.Requests != 5000 || p.Responses != 5000 || warm.Requests+5000 != server.requests.Load() || wrong.Load() != 0 {
		t.Errorf("%d requests, %d answers, %d in warm-up; the server saw %d, %d of them wrong",
			p.Requests, p.Responses, warm.Requests, server.requests.Load(), wrong.Load())
	}
	if warm.LastResponseAt > p.FirstRequestAt || math.Abs(p.FirstRequestAt-float64(time.Now().Unix())) > 60 {
		t.Errorf("warm-up ended at %f, measured began at %f", warm.LastResponseAt, p.FirstRequestAt)
	}
	if out.result.Trial != "demo-trial-001" || out.result.SchemaVersion != 1 || out.result.Generator.CPUSeconds <= 0 ||
		out.result.Generator.Version != "k6 v2.2.0" || out.result.Generator.PeakMemoryBytes <= 0 {
		t.Errorf("%+v", out.result)
	}
	if decode(t, p.Endpoints["list"].Latency).TotalCount() != 5000 {
		t.Error("latencies are missing")
	}
}

// The whole way of a session: its users in a file, over TLS, on connections opened before, as a Job runs it.
func TestBuiltInTrialWithSessionsOverTLS(t *testing.T) {
	t.Parallel()
	users := filepath.Join(t.TempDir(), "users.csv")
	if err := os.WriteFile(users, []byte("name\nada\nbob\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var lock sync.Mutex
	logins, reads, wrong := map[string]int{}, 0, 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		switch body, _ := io.ReadAll(r.Body); {
		case r.URL.Path == "/login":
			logins[string(body)]++
			_, _ = fmt.Fprintf(w, `{"token":"of %s"}`, body)
		case r.URL.Path == "/me":
			if reads++; r.Header.Get("Authorization") != "of ada" && r.Header.Get("Authorization") != "of bob" {
				wrong++
			}
		}
	}))
	defer server.Close()
	text, err := json.Marshal(map[string]any{
		"trial": "t", "target": server.URL, "waitSeconds": 5, "tls": map[string]any{"insecure": true},
		"feeders": []any{map[string]any{"name": "users", "csv": map[string]any{"file": users}}},
		"requests": []any{
			map[string]any{
				"name": "login", "method": "POST", "path": "/login", "body": "{{users.name}}",
				"captures": []any{map[string]any{"name": "token", "json": "/token"}},
			},
			map[string]any{"name": "me", "path": "/me", "headers": map[string]string{"Authorization": "{{token}}"}},
		},
		"sessions": []any{map[string]any{"name": "s", "steps": []string{"login", "me"}}},
		"load":     map[string]any{"closed": map[string]any{"connections": 2, "requests": 400, "keepAlive": true, "connectSeconds": 0.1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := k6(t, []string{"LAPTIME_TRIAL=" + string(text)}, nil, "trial.js")
	if out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	p := out.result.Phases["measured"]
	if p.Requests != 400 || p.Responses != 400 || logins["ada"] < 99 || logins["bob"] < 99 || wrong != 0 || int64(reads) != p.Endpoints["me"].Requests {
		t.Errorf("%d requests, %d answers, logins %v, %d of %d reads without a token", p.Requests, p.Responses, logins, wrong, reads)
	}
}

// A server that was there before: it says elsewhere that it serves, and answers only whom it knows.
func TestATargetWithCredentialsACertificateAndAHealthPathOfItsOwn(t *testing.T) {
	t.Parallel()
	var strangers, asked atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			strangers.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
		} else if r.URL.String() == "/ready?full=1" {
			asked.Add(1)
		} else if r.URL.Path != "/" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	trusted := filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(trusted, certificate, 0o644); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"trial":"t","target":%q,"healthPath":"/ready?full=1","waitSeconds":5,"requests":[{"name":"a","path":"/"}],
		"load":{"closed":{"connections":2,"requests":100,"keepAlive":true}}}`, server.URL)
	known := []string{"LAPTIME_TRIAL=" + text, "LAPTIME_AUTHORIZATION=Bearer secret", "SSL_CERT_FILE=" + trusted}
	out := k6(t, known, nil, "trial.js")
	if out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	p := out.result.Phases["measured"]
	if p.Responses != 100 || p.Endpoints["a"].Errors != 0 || strangers.Load() != 0 || asked.Load() == 0 {
		t.Errorf("%d answers, errors %v, %d strangers, asked %d times", p.Responses, p.Errors, strangers.Load(), asked.Load())
	}
	if strings.Contains(out.stdout+out.stderr, "secret") {
		t.Errorf("it says what is secret:\n%s\n%s", out.stdout, out.stderr)
	}
	if out = k6(t, known[:2], nil, "trial.js"); out.code != 3 || !strings.Contains(out.stdout, "certificate") {
		t.Errorf("whom nobody vouches for: exit code %d\n%s", out.code, out.stdout)
	}
}

func TestATargetThatSaysAtAnotherPortThatItServes(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	health := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 || r.URL.Path != "/ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	text := fmt.Sprintf(`{"trial":"t","target":%q,"healthPath":"/ready","healthTarget":%q,"waitSeconds":5,
		"requests":[{"name":"a","path":"/"}],"load":{"closed":{"connections":2,"requests":100,"keepAlive":true}}}`, server.URL, health.URL)
	out := k6(t, []string{"LAPTIME_TRIAL=" + text}, nil, "trial.js")
	if out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	answers := out.result.Phases["measured"].Responses
	// Once it is asked whether it takes a request.
	if answers != 100 || server.requests.Load() != 101 || server.probes.Load() != 0 || asked.Load() != 3 {
		t.Errorf("%d answers to %d requests, health asked for %d times", answers, server.requests.Load(), asked.Load())
	}
}

func TestEveryPreparedIdIsUsedAtMostOnceWarmupIncluded(t *testing.T) {
	t.Parallel()
	var lock sync.Mutex
	deleted, again := map[string]bool{}, 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		if deleted[r.URL.Path] {
			again++
		}
		deleted[r.URL.Path] = true
		w.WriteHeader(http.StatusNoContent)
	})
	text := fmt.Sprintf(`{"trial":"t","target":%q,"warmupSeconds":60,"waitSeconds":5,
		"requests":[{"name":"delete","method":"DELETE","path":"/tasks/{id}","expectStatus":204,
			"ids":{"first":101,"last":5100,"use":"once"}}],
		"load":{"closed":{"connections":10,"requests":4000,"keepAlive":true}}}`, server.URL)
	out := k6(t, []string{"LAPTIME_TRIAL=" + text}, nil, "trial.js")
	if out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	warm, measured := out.result.Phases["warmup"].Responses, out.result.Phases["measured"].Responses
	if warm != 1000 || measured != 4000 || len(deleted) != 5000 || again != 0 {
		t.Errorf("%d in warm-up, %d measured, %d ids, %d of them again", warm, measured, len(deleted), again)
	}
	if !deleted["/tasks/101"] || !deleted["/tasks/5100"] {
		t.Error("the first or the last id was not used")
	}
}

func TestOpenTrial(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	out := k6(t, trial(t, server.URL, `{"open":{"rate":500,"durationSeconds":1,"maxConnections":50,"keepAlive":false}}`, ""), nil, "trial.js")
	if out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	p := out.result.Phases["measured"]
	if p.Requests != 500 || server.requests.Load() != 500 || p.WindowSeconds != 1 || out.result.Phases["warmup"] != nil {
		t.Errorf("%d requests, the server saw %d, window %v s", p.Requests, server.requests.Load(), p.WindowSeconds)
	}
	if server.connections.Load() != 501 { // one more for /healthz
		t.Errorf("%d connections, expected one per request", server.connections.Load())
	}
}

// Generators that share a load send together exactly what one would, in the same window.
func TestGeneratorsShareALoadExactly(t *testing.T) {
	const count = 3
	for load, requests := range map[string]int64{
		`{"closed":{"connections":7,"requests":1000,"keepAlive":true}}`:                        1000,
		`{"open":{"rate":500,"durationSeconds":1,"maxConnections":20,"keepAlive":true}}`:       500,
		`{"closed":{"connections":3,"durationSeconds":0.5,"requests":null,"keepAlive":false}}`: 0,
	} {
		server := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Millisecond) })
		more := fmt.Sprintf(`,"waitSeconds":20,"generators":{"count":%d,"meet":%q}`, count, freeport.Address(t))
		results := make(chan outcome, count)
		for index := range count {
			environment := append(trial(t, server.URL, load, more), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
			go func() { results <- k6(t, environment, nil, "trial.js") }()
		}
		sum, seen := int64(0), map[int]bool{}
		earliest, latest := math.Inf(1), 0.0
		for range count {
			out := <-results
			if out.result == nil {
				t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
			}
			p := out.result.Phases["measured"]
			sum += p.Requests
			seen[out.result.Segment.Index] = out.result.Segment.Count == count
			earliest, latest = min(earliest, p.StartedAt), max(latest, p.StartedAt)
		}
		if sum != server.requests.Load() || (requests > 0 && sum != requests) || len(seen) != count {
			t.Errorf("%s: %d requests, the server saw %d, from generators %v", load, sum, server.requests.Load(), seen)
		}
		if latest-earliest > 0.2 {
			t.Errorf("%s: the starts are %f s apart", load, latest-earliest)
		}
	}
}

// Two trials of two generators each begin their measured parts at the same time, however late one of the
// servers comes, and each has its own load.
func TestTwoTrialsAreMeasuredAtTheSameTime(t *testing.T) {
	const each = 2
	meet, segments := freeport.Address(t), fmt.Sprintf(`"generators":{"count":%d,"meet":"nobody:1"}`, each)
	load := `{"open":{"rate":200,"durationSeconds":1,"maxConnections":20,"keepAlive":true}}`
	results, servers := make(chan outcome, 2*each), []*target{}
	for member := range 2 {
		server := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Duration(member) * time.Millisecond) })
		servers = append(servers, server)
		more := fmt.Sprintf(`,"waitSeconds":20,"warmupSeconds":0.2,%s,"together":{"name":"both","first":%d,"count":%d,"meet":%q}`,
			segments, member*each, 2*each, meet)
		for index := range each {
			environment := append(trial(t, server.URL, load, more), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
			go func() {
				time.Sleep(time.Duration(member) * 300 * time.Millisecond)
				results <- k6(t, environment, nil, "trial.js")
			}()
		}
	}
	earliest, latest := math.Inf(1), 0.0
	for range 2 * each {
		out := <-results
		if out.result == nil {
			t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
		}
		p := out.result.Phases["measured"]
		if p.Requests != 100 || out.result.Segment.Count != each {
			t.Errorf("%d requests of generator %+v", p.Requests, out.result.Segment)
		}
		earliest, latest = min(earliest, p.StartedAt), max(latest, p.StartedAt)
	}
	for member, server := range servers {
		// With those of the warm-up.
		if seen := server.requests.Load(); seen != 240 {
			t.Errorf("server %d saw %d requests", member, seen)
		}
	}
	if latest-earliest > 0.2 {
		t.Errorf("the starts are %f s apart", latest-earliest)
	}
}

func TestATrialWhosePartnerDoesNotComeGivesUp(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	load := `{"closed":{"connections":1,"durationSeconds":1,"keepAlive":true}}`
	more := fmt.Sprintf(`,"waitSeconds":2,"together":{"name":"both","first":0,"count":2,"meet":%q}`, freeport.Address(t))
	out := k6(t, trial(t, server.URL, load, more), nil, "trial.js")
	if out.code != 6 || out.result != nil || !strings.Contains(out.stdout, "generator 1 of 2 did not come") {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	if server.requests.Load() != 0 {
		t.Errorf("%d requests were sent all the same", server.requests.Load())
	}
}

func TestOneOfSeveralGeneratorsGivesUp(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	more := fmt.Sprintf(`,"waitSeconds":2,"generators":{"count":2,"meet":%q}`, freeport.Address(t))
	load := `{"closed":{"connections":2,"requests":10,"keepAlive":true}}`
	for index, says := range []string{"generator 1 of 2 did not come", "refused"} {
		environment := append(trial(t, server.URL, load, more), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
		out := k6(t, environment, nil, "trial.js")
		if out.code != 6 || out.result != nil || !strings.Contains(out.stdout, `"reason":"GeneratorsIncomplete"`) ||
			!strings.Contains(out.stdout, says) {
			t.Errorf("generator %d: exit code %d\n%s\n%s", index, out.code, out.stdout, out.stderr)
		}
	}
	if server.requests.Load() != 0 {
		t.Errorf("%d requests were sent all the same", server.requests.Load())
	}
}

// A server that serves one request at a time, 5 ms each, is saturated at 200 a second.
func TestSaturationIsFound(t *testing.T) {
	t.Parallel()
	var one sync.Mutex
	server := serve(t, func(http.ResponseWriter, *http.Request) {
		one.Lock()
		defer one.Unlock()
		for began := time.Now(); time.Since(began) < 5*time.Millisecond; {
			time.Sleep(time.Until(began.Add(5 * time.Millisecond)))
		}
	})
	load := `{"saturation":{"p99Seconds":0.1,"errorRate":0.01,"startRate":20,"maxRate":5000,"stepSeconds":1,"maxConnections":100,"keepAlive":true}}`
	out := k6(t, trial(t, server.URL, load, `,"waitSeconds":5,"warmupSeconds":0.2`), nil, "trial.js")
	if out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	found, p := out.result.Saturation, out.result.Phases["measured"]
	// A busy machine makes the server slower, never faster; and in steps of a second the rate at
	// which answers fall behind may come out a little below the one that still meets the objective.
	if found.Low <= 0 || found.Low > 220 || found.High <= found.Low || found.Breaking <= 0 {
		t.Errorf("%+v", found)
	}
	if math.Abs(float64(p.Requests)-found.Low) > 1 {
		t.Errorf("%d requests in the second that counts, at %v/s", p.Requests, found.Low)
	}
}

func TestTrialWaitsForAServerThatComesLate(t *testing.T) {
	t.Parallel()
	address := freeport.Address(t)
	go func() {
		time.Sleep(1500 * time.Millisecond)
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		_ = http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}()
	load := `{"closed":{"connections":1,"requests":10,"keepAlive":true}}`
	out := k6(t, trial(t, "http://"+address, load, `,"waitSeconds":20`), nil, "trial.js")
	if out.result == nil || out.result.Phases["measured"].Responses != 10 {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
}

func TestTrialWithoutDatabaseEndsWithItsReason(t *testing.T) {
	t.Parallel()
	load := `{"closed":{"connections":1,"requests":10,"keepAlive":true}}`
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	env := append(trial(t, server.URL, load, `,"waitSeconds":20,"resetStatements":["SELECT 1"]`),
		"DATABASE_URL=postgresql://u@127.0.0.1:1/d?sslmode=disable")
	out := k6(t, env, nil, "trial.js")
	if out.result != nil || !strings.HasPrefix(out.stdout, `LAPTIME-ERROR {"reason":"DatabaseNotReachable","message":"`) {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
}

// Its servers make their tables themselves: all that is asked there is on which schema they are.
func TestOfADatabaseWithoutAResetOnlyTheSchemaIsAsked(t *testing.T) {
	t.Parallel()
	load := `{"closed":{"connections":1,"requests":10,"keepAlive":true}}`
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	env := append(trial(t, server.URL, load, `,"waitSeconds":20,"schemaQuery":"SELECT 1"`),
		"SCHEMA_DATABASE_URL=postgresql://u@127.0.0.1:1/d?sslmode=disable")
	out := k6(t, env, nil, "trial.js")
	if out.result == nil || out.result.Phases["measured"].Responses != 10 || out.result.Statements != nil {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
}

func TestTrialWithoutServerEndsWithItsReason(t *testing.T) {
	t.Parallel()
	load := `{"closed":{"connections":1,"requests":10,"keepAlive":true}}`
	out := k6(t, trial(t, "http://127.0.0.1:1", load, `,"waitSeconds":0.3`), nil, "trial.js")
	if out.code != 3 || out.result != nil || !strings.HasPrefix(out.stdout, `LAPTIME-ERROR {"reason":"TargetNotReachable","message":"`) {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	for _, text := range []string{"", "{}", `{"target":"https://x"}`} {
		out := k6(t, []string{"LAPTIME_TRIAL=" + text}, nil, "trial.js")
		if out.code != 4 || out.result != nil || !strings.Contains(out.stdout, `"reason":"InvalidTrial"`) {
			t.Errorf("%q: exit code %d\n%s\n%s", text, out.code, out.stdout, out.stderr)
		}
	}
}

func TestTerminatedTrialStopsAtOnceWithoutResult(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) })
	for _, load := range []string{
		`{"closed":{"connections":4,"durationSeconds":60,"keepAlive":true}}`,
		`{"open":{"rate":50,"durationSeconds":60,"maxConnections":10,"keepAlive":true}}`,
	} {
		before := server.requests.Load()
		var signalled time.Time
		out := k6(t, trial(t, server.URL, load, ""), func(process *os.Process) {
			for wait := 0; server.requests.Load() < before+10 && wait < 3000; wait++ {
				time.Sleep(10 * time.Millisecond)
			}
			signalled = time.Now()
			_ = process.Signal(syscall.SIGTERM)
		}, "trial.js")
		if out.code == 0 || out.result != nil || time.Since(signalled) > 5*time.Second {
			t.Errorf("%s: exit code %d, %s after the signal\n%s\n%s", load, out.code, time.Since(signalled), out.stdout, out.stderr)
		}
	}
}

// A user's own script uses k6/http; its scenario "warmup" is warm-up, all else is measured.
func TestOwnScriptLeavesTheSameResult(t *testing.T) {
	const delay = 50 * time.Millisecond
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(delay)
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	script := filepath.Join(t.TempDir(), "own.js")
	source := `
		import http from 'k6/http';
		export const options = { noConnectionReuse: true, scenarios: {
			warmup: { executor: 'per-vu-iterations', vus: 1, iterations: 3 },
			steady: { executor: 'per-vu-iterations', vus: 2, iterations: 20, startTime: '3s' },
		}, thresholds: { http_req_duration: ['max<1'] } };
		export default function () {
			http.get(__ENV.TARGET + '/', { tags: { name: 'list' } });
			http.get(__ENV.TARGET + '/missing', { tags: { name: 'missing' } });
		}`
	if err := os.WriteFile(script, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out := k6(t, []string{"TARGET=" + server.URL}, nil, script)
	if out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	warm, p := out.result.Phases["warmup"], out.result.Phases["measured"]
	if warm.Requests != 6 || p.Requests != 80 || p.Responses != 40 || p.Errors["status"] != 40 ||
		p.StatusCodes["404"] != 40 || p.StatusCodes["200"] != 40 || p.BytesReceived == 0 {
		t.Errorf("warm-up %+v\nmeasured %+v", warm, p)
	}
	list := p.Endpoints["list"]
	if list.Requests != 40 || p.Endpoints["missing"].Errors != 40 || decode(t, list.Connect).TotalCount() != 40 {
		t.Errorf("endpoints %+v", p.Endpoints)
	}
	latency := decode(t, list.Latency)
	// What is more than the server takes is that of a machine on which other tests run.
	if low, high := latency.Min(), latency.ValueAtQuantile(50); low < 50_000 || high > 200_000 {
		t.Errorf("latency %d … %d µs, the server takes %s", low, high, delay)
	}
	if server.requests.Load() != 86 || p.FirstRequestAt < warm.LastResponseAt || p.LastResponseAt-p.FirstRequestAt < 2 {
		t.Errorf("%d requests at the server, measured %f … %f", server.requests.Load(), p.FirstRequestAt, p.LastResponseAt)
	}
}

func TestOwnScriptThatIsTerminatedLeavesNoResult(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(10 * time.Millisecond) })
	script := filepath.Join(t.TempDir(), "own.js")
	source := `
		import http from 'k6/http';
		export const options = { scenarios: { steady: { executor: 'constant-vus', vus: 2, duration: '60s', gracefulStop: '1s' } } };
		export default function () { http.get(__ENV.TARGET + '/'); }`
	if err := os.WriteFile(script, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out := k6(t, []string{"TARGET=" + server.URL}, func(process *os.Process) {
		for wait := 0; server.requests.Load() < 10 && wait < 3000; wait++ {
			time.Sleep(10 * time.Millisecond)
		}
		_ = process.Signal(syscall.SIGTERM)
	}, script)
	if out.code == 0 || out.result != nil {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
}

// Prometheus finds growing counts while a trial runs, and nothing where nobody asked for them.
func TestLiveFigures(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) })
	load := `{"closed":{"connections":2,"durationSeconds":1.5,"keepAlive":true}}`
	address := freeport.Address(t)
	count := regexp.MustCompile(`(?m)^laptime_generator_requests_total\{endpoint="[^"]+",phase="measured"\} (\d+)$`)
	var seen []int
	out := k6(t, append(trial(t, server.URL, load, `,"warmupSeconds":0.3`), "LAPTIME_METRICS_ADDRESS="+address), func(*os.Process) {
		// Until the program has listened and, after its trial, listens no more; one that ended before
		// it listened is told by what it printed.
		for began, wait := false, 0; wait < 1500; wait++ {
			time.Sleep(20 * time.Millisecond)
			answer, err := http.Get("http://" + address + "/metrics")
			if err != nil {
				if began || server.requests.Load() > 0 {
					return
				}
				continue
			}
			began = true
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if found := count.FindSubmatch(text); found != nil && bytes.Contains(text, []byte("\nlaptime_generator_phase{phase=\"measured\"} 1\n")) {
				n, _ := strconv.Atoi(string(found[1]))
				seen = append(seen, n)
			}
		}
	}, "trial.js")
	if out.result == nil || len(seen) == 0 {
		t.Fatalf("exit code %d, seen %v\n%s\n%s", out.code, seen, out.stdout, out.stderr)
	}
	last := seen[len(seen)-1]
	if !slices.IsSorted(seen) || len(slices.Compact(seen)) < 3 || int64(last) > out.result.Phases["measured"].Requests {
		t.Errorf("%v of %d", seen, out.result.Phases["measured"].Requests)
	}
}

func TestTrialGoesOnWhereThePortIsTaken(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	load := `{"closed":{"connections":1,"requests":10,"keepAlive":true}}`
	address := "LAPTIME_METRICS_ADDRESS=" + server.Listener.Addr().String()
	out := k6(t, append(trial(t, server.URL, load, ""), address), nil, "trial.js")
	if out.result == nil || out.result.Phases["measured"].Responses != 10 || strings.Count(out.stderr, "laptime: no live figures: ") != 1 {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
}

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"laptime.dev/k6/internal/result"
)

// What the results say of those that come to their end.
var badScriptsResults = map[string]func(*result.Result) bool{
	"an-iteration": func(r *result.Result) bool {
		for text, count := range r.Script.Exceptions {
			return count == 1 && len(r.Script.Exceptions) == 1 && strings.Contains(text, "SyntaxError") && strings.Contains(text, "own.js:4:") &&
				r.Script.Iterations == 1000
		}
		return false
	},
	"every-iteration-differently": func(r *result.Result) bool { return len(r.Script.Exceptions) == 10 && r.Script.MoreExceptions == 190 },
	"an-endless-iteration":        func(r *result.Result) bool { return r.Script.Iterations == 0 && r.Phases["measured"].Requests == 0 },
	"urls": func(r *result.Result) bool {
		p := r.Phases["measured"]
		return p.Requests == 3000 && len(p.Endpoints) == 50 && p.Endpoints["other"].Requests == 2951 && r.Script.EndpointsLeftOut == 2951
	},
	"tags":           func(r *result.Result) bool { return r.Script.Metrics["counted"].Sum == 100_000 },
	"unknown-option": func(*result.Result) bool { return true },
}

var badScriptsEnd = regexp.MustCompile(`(?m)^// exit code: (\d+)\n(?:// environment: (.+)\n)?(?:// says: (.+)\n)?\z`)

// Every way in which a script can be wrong ends soon, with k6's own words and the line, and never with figures
// that hide it. Each file says at its end what comes of it, and in which environment.
func TestBadScriptsAreTold(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	files, err := filepath.Glob("testdata/bad/*.js")
	if err != nil || len(files) < 23 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".js")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			end := badScriptsEnd.FindSubmatch(source)
			if end == nil {
				t.Fatal("its end does not say what comes of it")
			}
			code, _ := strconv.Atoi(string(end[1]))
			fits := badScriptsResults[name]
			script := write(t, string(source))
			out := k6(t, slices.Concat([]string{"TARGET=" + server.URL, "LAPTIME_WARMUP_SECONDS=0"}, strings.Fields(string(end[2]))), nil, script)
			if out.code != code || fits == nil && out.took > 40*time.Second || (out.result != nil) != (fits != nil) {
				t.Errorf("exit code %d after %s, result: %v\n%.2000s\n%.2000s", out.code, out.took, out.result != nil, out.stdout, out.stderr)
			}
			if found, err := regexp.Match(string(end[3]), []byte(out.stdout+out.stderr)); err != nil || !found {
				t.Errorf("%v: not said: %q\n%.2000s\n%.2000s", err, end[3], out.stdout, out.stderr)
			}
			if out.result != nil && fits != nil && !fits(out.result) {
				t.Errorf("%+v\n%+v", out.result.Script, out.result.Phases["measured"])
			}
			if folder := os.Getenv("LAPTIME_KEEP_LOGS"); folder != "" {
				_ = os.WriteFile(filepath.Join(folder, name+".log"), []byte(out.stderr+out.stdout), 0o600)
			}
		})
	}
}

// Package spec reads what a trial is to do.
package spec

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"laptime.dev/k6/internal/session"
)

// Trial is one trial of one generator, as LAPTIME_TRIAL holds it.
type Trial struct {
	Trial  string `json:"trial"`
	Target string `json:"target"`
	// What answers 200 once the target serves; absent: /healthz.
	HealthPath string `json:"healthPath"`
	// Where that is asked, such as http://server:9001; absent: at the target.
	HealthTarget   string    `json:"healthTarget"`
	WaitSeconds    float64   `json:"waitSeconds"`
	Requests       []Request `json:"requests"`
	Load           Load      `json:"load"`
	WarmupSeconds  float64   `json:"warmupSeconds"`
	TimeoutSeconds float64   `json:"timeoutSeconds"`
	// Generators that share the load; absent: this one alone.
	Generators *Generators `json:"generators"`
	// A trial that is measured at the same time; absent: this one is alone.
	Together *Together `json:"together"`
	// Statements that bring the database (environment DATABASE_URL) to the same state before.
	ResetStatements []string `json:"resetStatements"`
	// What it is asked for its schema then: statements of one message, the last of which has one text. Absent: nothing.
	SchemaQuery string `json:"schemaQuery"`
	// What templates of requests take their values from.
	Feeders []Feeder `json:"feeders"`
	// What a user does; absent: each request is a session of its own.
	Sessions []Session `json:"sessions"`
	// Of an https target; absent: its certificate is one that the machine trusts.
	TLS *TLS `json:"tls"`
	// Of all that is drawn at random.
	Seed int64 `json:"seed"`
	// Of what feeders draw, where that has to be other values each time; absent: Seed.
	FeederSeed *int64 `json:"feederSeed"`

	work          *session.Work
	secured       *tls.Config
	authorization string
}

// Request is one endpoint. Path, values of headers and cookies, and the body are templates.
type Request struct {
	Name         string            `json:"name"`
	Method       string            `json:"method"`
	Path         string            `json:"path"`
	Headers      map[string]string `json:"headers"`
	Cookies      map[string]string `json:"cookies"`
	Body         *string           `json:"body"`
	ExpectStatus int               `json:"expectStatus"`
	Check        string            `json:"check"` // "", "nonEmpty" or "same"
	Ids          *Ids              `json:"ids"`   // what stands for {id}
	// What of an answer the next requests of the same user need.
	Captures []Capture `json:"captures"`
	// How long a user waits after the answer.
	ThinkSeconds *Think `json:"thinkSeconds"`
	// How often beside the other requests, where there are no sessions; absent: 1.
	Weight int `json:"weight"`
}

// Capture is a value of an answer: of one of json, header and cookie, or else of the body, what regex
// finds, or all of it.
type Capture struct {
	Name   string `json:"name"`
	JSON   string `json:"json"` // a JSON pointer
	Header string `json:"header"`
	Cookie string `json:"cookie"`
	Regex  string `json:"regex"` // its first group
}

// Think is a time in seconds, evenly spread between the two; an absent Max is Min.
type Think struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// Session is requests, by their names, that a user sends one after the other.
type Session struct {
	Name   string   `json:"name"`
	Weight int      `json:"weight"` // absent: 1
	Steps  []string `json:"steps"`
}

const maxSeconds = 24 * 3600

// Parse reads and checks a trial; its errors say what to write. Absent fields get their defaults:
// timeout 30 s, expected status 200, method GET. authorization is that header of every request that has
// none of its own; empty: they have none.
func Parse(text, authorization string) (*Trial, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("LAPTIME_TRIAL is empty: set it to the JSON of a trial")
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var t Trial
	if err := decoder.Decode(&t); err != nil {
		return nil, fmt.Errorf("LAPTIME_TRIAL: %w", err)
	}
	if t.TimeoutSeconds == 0 {
		t.TimeoutSeconds = 30
	}
	if t.HealthPath == "" {
		t.HealthPath = "/healthz"
	}
	for i := range t.Requests {
		r := &t.Requests[i]
		if r.Method == "" {
			r.Method = http.MethodGet
		}
		if r.ExpectStatus == 0 {
			r.ExpectStatus = http.StatusOK
		}
	}
	if err := t.authorize(strings.TrimSpace(authorization)); err != nil {
		return nil, err
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("LAPTIME_TRIAL: %w", err)
	}
	return &t, nil
}

func (t *Trial) check() error {
	target, err := url.Parse(t.Target)
	switch {
	case err != nil:
		return fmt.Errorf("target: %w", err)
	case target.Scheme != "http" && target.Scheme != "https" || target.Host == "":
		return fmt.Errorf("target %q: write http://host:port or https://host:port", t.Target)
	case t.TLS != nil && target.Scheme != "https":
		return fmt.Errorf("tls: the target %q has none; write https://host:port, or leave tls out", t.Target)
	case strings.Trim(target.Path, "/") != "" || target.RawQuery != "":
		return fmt.Errorf("target %q: paths belong into the requests", t.Target)
	case !strings.HasPrefix(t.HealthPath, "/"):
		return fmt.Errorf("healthPath: %q does not begin with /", t.HealthPath)
	case t.HealthTarget != "" && !strings.HasPrefix(t.HealthTarget, "http://"):
		return fmt.Errorf("healthTarget %q: write http://host:port", t.HealthTarget)
	case len(t.Requests) == 0:
		return errors.New("requests: name at least one")
	}
	for what, seconds := range map[string]float64{
		"waitSeconds": t.WaitSeconds, "warmupSeconds": t.WarmupSeconds, "timeoutSeconds": t.TimeoutSeconds,
	} {
		if seconds < 0 || seconds > maxSeconds {
			return fmt.Errorf("%s: %v is not within 0 … %d", what, seconds, maxSeconds)
		}
	}
	protocol := "http/1.1"
	if t.Load.HTTP2() {
		protocol = http2.NextProtoTLS
	}
	if t.secured, err = t.TLS.config(target, protocol); err != nil {
		return err
	}
	names := map[string]bool{}
	for i, r := range t.Requests {
		if r.Name == "" || names[r.Name] {
			return fmt.Errorf("requests[%d].name: %q is empty or not unique", i, r.Name)
		}
		names[r.Name] = true
		if !strings.HasPrefix(r.Path, "/") {
			return fmt.Errorf("requests[%d].path: %q does not begin with /", i, r.Path)
		}
		if r.Check != "" && r.Check != "nonEmpty" && r.Check != "same" {
			return fmt.Errorf("requests[%d].check: %q is neither nonEmpty nor same", i, r.Check)
		}
		if r.ExpectStatus < 200 || r.ExpectStatus > 599 {
			return fmt.Errorf("requests[%d].expectStatus: %d is not within 200 … 599", i, r.ExpectStatus)
		}
		for name := range r.Headers {
			if t.Load.HTTP2() && session.OfConnections(name) {
				return fmt.Errorf("requests[%d].headers: HTTP/2 has no header %s; leave it out, or write protocol http1", i, name)
			}
		}
		if r.Ids == nil && strings.Contains(r.Path, session.ShortID) {
			return fmt.Errorf("requests[%d].path, %s: ids are missing", i, session.ShortID)
		}
	}
	if err := t.Load.check(); err != nil {
		return err
	}
	if err := t.Together.check(t); err != nil {
		return err
	}
	if err := t.Generators.check(&t.Load); err != nil {
		return err
	}
	if err := t.makeWork(); err != nil {
		return err
	}
	return t.checkBudget()
}

// Timeout is the time a request may take, connection set-up included.
func (t *Trial) Timeout() time.Duration { return Seconds(t.TimeoutSeconds) }

// Seconds converts seconds to a duration.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

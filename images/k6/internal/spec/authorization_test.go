package spec

import (
	"strings"
	"testing"
)

const twoRequests = `{"target":"http://x","healthPath":"/ready","load":{"closed":{"connections":1,"requests":1}},"requests":[
	{"name":"plain","path":"/"},
	{"name":"own","path":"/","headers":{"authorization":"Basic mine"}}]}`

func TestEveryRequestCarriesTheAuthorizationButThoseWithTheirOwn(t *testing.T) {
	trial, err := Parse(twoRequests, "Bearer secret\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := trial.Requests[0].Headers["Authorization"]; got != "Bearer secret" || trial.Authorization() != got {
		t.Errorf("%q, for the health check %q", got, trial.Authorization())
	}
	if own := trial.Requests[1].Headers; len(own) != 1 || own["authorization"] != "Basic mine" {
		t.Errorf("%v", own)
	}
	if trial, err = Parse(twoRequests, ""); err != nil || trial.Requests[0].Headers != nil {
		t.Errorf("%v, %v", trial, err)
	}
}

func TestAnAuthorizationThatIsNoHeaderIsRefusedAndNotQuoted(t *testing.T) {
	for _, wrong := range []string{"Bearer se\ncret", "{{secret}}"} {
		_, err := Parse(twoRequests, wrong)
		if err == nil || strings.Contains(err.Error(), "cret") || !strings.Contains(err.Error(), "LAPTIME_AUTHORIZATION: write") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestWhatSaysThatATargetServesIsAPath(t *testing.T) {
	if _, err := Parse(strings.Replace(twoRequests, "/ready", "ready", 1), ""); err == nil || !strings.Contains(err.Error(), "does not begin with /") {
		t.Error(err)
	}
	apart := func(target string) string {
		return strings.Replace(twoRequests, `"healthPath"`, `"healthTarget":"`+target+`","healthPath"`, 1)
	}
	if _, err := Parse(apart("x:9001"), ""); err == nil || !strings.Contains(err.Error(), "write http://host:port") {
		t.Error(err)
	}
	if trial, err := Parse(apart("http://x:9001"), ""); err != nil || trial.HealthTarget != "http://x:9001" {
		t.Error(trial, err)
	}
	if trial, err := trialWith(`{"closed":{"connections":1,"requests":1}}`, "null"); err != nil || trial.HealthPath != "/healthz" {
		t.Error(trial, err)
	}
}

package spec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the operator writes: its own tests make the file (operator/tests/manifests/test_golden.py).
func written(t *testing.T) (trials []string, most int64) {
	t.Helper()
	text, err := os.ReadFile("testdata/operator.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Files        map[string]string `json:"files"`
		MostRequests int64             `json:"mostRequests"`
		Trials       []json.RawMessage `json:"trials"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range document.Files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, trial := range document.Trials {
		trials = append(trials, strings.ReplaceAll(string(trial), `"/feeders/`, `"`+folder+"/"))
	}
	return trials, document.MostRequests
}

func TestWhatTheOperatorWritesIsUnderstood(t *testing.T) {
	trials, _ := written(t)
	if len(trials) != 3 {
		t.Fatalf("%d trials", len(trials))
	}
	sessions := 0
	for _, text := range trials {
		trial, err := Parse(text, "")
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		sessions += len(trial.Sessions)
	}
	if sessions != 4 {
		t.Errorf("%d sessions, expected shop and front, shop and login", sessions)
	}
}

func TestTheOperatorRefusesTheLoadsThatTheGeneratorWouldRefuse(t *testing.T) {
	trials, most := written(t)
	for _, text := range trials {
		var trial Trial
		if err := json.Unmarshal([]byte(text), &trial); err != nil {
			t.Fatal(err)
		}
		if trial.Load.Closed == nil || trial.Load.Closed.Requests == 0 {
			continue
		}
		for requests, good := range map[int64]bool{most: true, most + 1: false} {
			trial.Load.Closed.Requests = requests
			changed, err := json.Marshal(&trial)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = Parse(string(changed), ""); (err == nil) != good {
				t.Errorf("%d requests: %v", requests, err)
			}
		}
		return
	}
	t.Error("no trial is bound by requests")
}

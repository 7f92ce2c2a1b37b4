package spec

import (
	"fmt"
	"strings"
	"testing"
)

func TestSharesAddUpToTheWhole(t *testing.T) {
	for _, whole := range []int64{0, 1, 7, 16, 50_000, 999_999_937, 1 << 62} {
		for count := 1; count <= maxGenerators; count++ {
			sum, least, most := int64(0), int64(1)<<62, int64(0)
			for index := range count {
				share := Segment{index, count}.Share(whole)
				sum, least, most = sum+share, min(least, share), max(most, share)
			}
			if sum != whole || most-least > 1 {
				t.Errorf("%d over %d: the parts, %d … %d, add up to %d", whole, count, least, most, sum)
			}
		}
	}
}

func trialWith(load, generators string) (*Trial, error) {
	return Parse(fmt.Sprintf(`{"target":"http://x","requests":[{"name":"a","path":"/"}],"load":%s,"generators":%s}`, load, generators), "")
}

func TestGeneratorsAreChecked(t *testing.T) {
	const closed = `{"closed":{"connections":3,"requests":9}}`
	for generators, says := range map[string]string{
		`{"count":0}`:               "not within 1",
		`{"count":17,"meet":"a:1"}`: "not within 1",
		`{"count":2}`:               "write host:port",
		`{"count":4,"meet":"a:1"}`:  "4 generators cannot share 3 connections",
	} {
		if _, err := trialWith(closed, generators); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", generators, err)
		}
	}
	trial, err := trialWith(closed, `{"count":3,"meet":"a:1"}`)
	if err != nil {
		t.Fatal(err)
	}
	for index, fine := range map[string]bool{"0": true, "2": true, "3": false, "-1": false, "": false} {
		if _, err := trial.Segment(index); (err == nil) != fine {
			t.Errorf("index %q: %v", index, err)
		}
	}
	alone, err := trialWith(closed, `null`)
	if err != nil {
		t.Fatal(err)
	}
	if segment, err := alone.Segment(""); err != nil || segment != (Segment{0, 1}) {
		t.Errorf("%v, %v", segment, err)
	}
}

func TestTwoTrialsAtTheSameTimeAreChecked(t *testing.T) {
	const lasting, counted = `{"closed":{"connections":3,"durationSeconds":1}}`, `{"closed":{"connections":3,"requests":9}}`
	for _, wrong := range []struct{ load, together, says string }{
		{lasting, `{"count":2,"meet":"a:1"}`, "together.name"},
		{lasting, `{"name":"b","count":1,"first":1,"meet":"a:1"}`, "the 1 generators from 1 on"},
		{lasting, `{"name":"b","count":33,"meet":"a:1"}`, "at most 32"},
		{lasting, `{"name":"b","count":2,"first":-1,"meet":"a:1"}`, "from -1 on"},
		{lasting, `{"name":"b","count":2}`, "together.meet"},
		{counted, `{"name":"b","count":2,"meet":"a:1"}`, "write a load with a duration"},
	} {
		text := `{"target":"http://x","requests":[{"name":"a","path":"/"}],"load":%s,"together":%s}`
		_, err := Parse(fmt.Sprintf(text, wrong.load, wrong.together), "")
		if err == nil || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("%s: %v", wrong.together, err)
		}
	}
}

func TestLoadsThatCannotBeSentAreRefusedWithAReason(t *testing.T) {
	for load, says := range map[string]string{
		`{}`: "exactly one of closed, open, ramp, stairs and saturation",
		`{"stairs":{"steps":[],"maxConnections":1}}`:                                                                      "write 1 … 100 steps",
		`{"stairs":{"steps":[{"rate":0,"durationSeconds":1}],"maxConnections":1}}`:                                        "steps[0].rate",
		`{"stairs":{"steps":[{"rate":1,"durationSeconds":0}],"maxConnections":1}}`:                                        "steps[0]: a duration",
		`{"stairs":{"steps":[{"rate":1,"durationSeconds":80000},{"rate":1,"durationSeconds":80000}],"maxConnections":1}}`: "load.stairs: a duration",
		`{"open":{"rate":1,"durationSeconds":1,"maxConnections":1,"arrivals":"random"}}`:                                  `"random"; write even or poisson`,
		`{"open":{"rate":1,"durationSeconds":1,"maxConnections":0}}`:                                                      "load.open.maxConnections",
		`{"closed":{"connections":1,"requests":1,"keepAlive":true,"connectSeconds":601}}`:                                 "connectSeconds: 601 is not within",
		`{"closed":{"connections":1,"requests":1,"connectSeconds":1}}`:                                                    "without keepAlive each request opens a connection",
		`{"ramp":{"from":1,"to":2,"durationSeconds":1,"maxConnections":1,"connectSeconds":1}}`:                            "load.ramp.connectSeconds",
		`{"saturation":{"p99Seconds":1,"startRate":1,"maxRate":2,"stepSeconds":1,"maxConnections":1,"arrivals":"x"}}`:     "load.saturation.arrivals",
	} {
		if _, err := trialWith(load, "null"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %q", load, err, says)
		}
	}
	for _, load := range []string{
		`{"stairs":{"steps":[{"rate":1,"durationSeconds":1},{"rate":9,"durationSeconds":2}],"maxConnections":1,"keepAlive":true,"arrivals":"poisson","connectSeconds":2}}`,
		`{"closed":{"connections":1,"requests":1,"keepAlive":true,"connectSeconds":2}}`,
	} {
		if _, err := trialWith(load, "null"); err != nil {
			t.Errorf("%s: %v", load, err)
		}
	}
}

func TestWhomToTrustIsChecked(t *testing.T) {
	for more, says := range map[string]string{
		`"target":"https://x"`:                             "",
		`"target":"https://x","tls":{"insecure":true}`:     "",
		`"target":"https://x","tls":{"ca":"certificates"}`: "write PEM",
		`"target":"http://x","tls":{"insecure":true}`:      "write https://host:port, or leave tls out",
		`"target":"ftp://x"`:                               "write http://host:port or https://host:port",
	} {
		trial, err := Parse(`{"requests":[{"name":"a","path":"/"}],"load":{"closed":{"connections":1,"requests":1}},`+more+`}`, "")
		if says == "" && (err != nil || trial.Secured().ServerName != "x") || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, expected %q", more, err, says)
		}
	}
}

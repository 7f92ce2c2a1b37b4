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
	return Parse(fmt.Sprintf(`{"target":"http://x","requests":[{"name":"a","path":"/"}],"load":%s,"generators":%s}`, load, generators))
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

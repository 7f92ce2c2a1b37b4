// Package sharing lets several generators run one script of a user's own: each of them its execution
// segment, all from one start, with one setup() and one teardown() for all of them.
//
// k6 has what it takes, but for somebody who uses it: it can begin paused, leave setup() and teardown()
// to others and stay when it is done, and its REST API runs the two, hands data on and lets it go. Each
// generator does this to its own k6; the generators agree among each other by meeting.
package sharing

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Where k6's REST API listens: nobody outside of the pod can ask it.
const defaultAPI = "127.0.0.1:6565"

// Place is a generator's place among those that share a script.
type Place struct {
	Trial    string
	Index    int // from 0
	Count    int // 1: it is alone, and all else does not matter
	Meet     string
	API      string
	Patience time.Duration // how long the others may take to come
}

// Read gives the place that the environment says: LAPTIME_GENERATORS and LAPTIME_MEET are the run's,
// JOB_COMPLETION_INDEX is set by the controller of Indexed Jobs.
func Read(getenv func(string) string) (Place, error) {
	p := Place{Trial: getenv("LAPTIME_TRIAL_NAME"), Count: 1, Meet: getenv("LAPTIME_MEET"), API: getenv("K6_ADDRESS")}
	text := getenv("LAPTIME_GENERATORS")
	if text == "" || text == "1" {
		return p, nil
	}
	var err error
	if p.Count, err = strconv.Atoi(text); err != nil || p.Count < 1 {
		return p, fmt.Errorf("LAPTIME_GENERATORS: %q is no number of generators", text)
	}
	if p.Index, err = strconv.Atoi(getenv("JOB_COMPLETION_INDEX")); err != nil || p.Index < 0 || p.Index >= p.Count {
		return p, fmt.Errorf("JOB_COMPLETION_INDEX: %q is not within 0 … %d", getenv("JOB_COMPLETION_INDEX"), p.Count-1)
	}
	seconds, err := strconv.ParseFloat(getenv("LAPTIME_WAIT_SECONDS"), 64)
	if err != nil || seconds < 0 {
		return p, fmt.Errorf("LAPTIME_WAIT_SECONDS: %q is no number of seconds", getenv("LAPTIME_WAIT_SECONDS"))
	}
	p.Patience = time.Duration(seconds * float64(time.Second))
	if p.Meet == "" {
		return p, errors.New("LAPTIME_MEET: write host:port of generator 0")
	}
	if p.API == "" {
		p.API = defaultAPI
	}
	return p, nil
}

// Arguments gives the arguments of a k6 that begins when it is told to, with its part of the load. Those of
// a k6 that is alone, or does not run a script, stay as they are.
func (p Place) Arguments(arguments []string) ([]string, error) {
	if p.Count == 1 || len(arguments) < 2 || arguments[1] != "run" {
		return arguments, nil
	}
	bounds := []string{"0"}
	for i := 1; i < p.Count; i++ {
		bounds = append(bounds, fmt.Sprintf("%d/%d", i, p.Count))
	}
	bounds = append(bounds, "1")
	given := []string{
		arguments[0], "run", "--paused", "--no-setup", "--no-teardown", "--address=" + p.API,
		"--execution-segment=" + bounds[p.Index] + ":" + bounds[p.Index+1],
		"--execution-segment-sequence=" + strings.Join(bounds, ","),
	}
	if p.Index == 0 { // it stays until the others are done, for teardown()
		given = append(given, "--linger")
	}
	for _, one := range arguments[2:] {
		if text, found := strings.CutPrefix(one, "--rps="); found {
			rate, err := p.share(text)
			if err != nil {
				return nil, err
			}
			one = "--rps=" + rate
		}
		given = append(given, one)
	}
	return given, nil
}

// share gives this generator's part of the most requests per second, which k6 does not divide.
func (p Place) share(text string) (string, error) {
	rate, err := strconv.Atoi(text)
	if err != nil {
		return "", fmt.Errorf("--rps=%s: no whole number", text)
	}
	part := rate / p.Count
	if p.Index < rate%p.Count {
		part++
	}
	if part == 0 { // which would be no bound at all
		return "", fmt.Errorf("--rps=%d: %d generators cannot share so few requests per second", rate, p.Count)
	}
	return strconv.Itoa(part), nil
}

package session

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// made makes work of requests, each a session of its own, and gives the message of the first one.
func made(t *testing.T, requests []Request, feeders ...*Feeder) (*Work, func(u *User) string) {
	t.Helper()
	var sessions []Session
	for i := range requests {
		r := &requests[i]
		r.Method, r.Target, r.KeepAlive = http.MethodPost, "http://host", true
		sessions = append(sessions, Session{Name: r.Name, Weight: 1, Steps: []string{r.Name}})
	}
	work, err := New(requests, feeders, sessions)
	if err != nil {
		t.Fatal(err)
	}
	for _, feeder := range work.Feeders() {
		feeder.Share(0, feeder.Rows(), 1)
	}
	var scratch []byte
	return work, func(u *User) string { return string(work.Messages[0].Append(nil, u, &scratch)) }
}

func table(t *testing.T, text string) *Feeder {
	t.Helper()
	feeder, err := Table("users", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return feeder
}

func TestValuesAreWrittenAsTheirPlaceAsks(t *testing.T) {
	text := `{"name":"{{users.name}}","raw":{{users.json | raw}},"open":"{{'{{'}}"}`
	work, message := made(t, []Request{{
		Name: "r", Path: "/u/{{ users.name }}/x?q={{users.name}}&raw={{users.path|raw}}", Body: &text,
		Headers: map[string]string{"Content-Type": "application/json; charset=utf-8", "X-Name": "a {{users.path}} b"},
		Cookies: map[string]string{"c": "{{users.path}}"},
	}}, table(t, "name,json,path\n\"a \"\"b\"\"/ü\",\"{\"\"x\"\":1}\",p/q\n"))
	user := work.NewUser()
	work.Begin(&user, 0)
	if _, ok := work.Draw(&user); !ok {
		t.Fatal("no row")
	}
	body := `{"name":"a \"b\"/ü","raw":{"x":1},"open":"{{"}`
	want := "POST /u/a%20%22b%22%2F%C3%BC/x?q=a%20%22b%22%2F%C3%BC&raw=p/q HTTP/1.1\r\nHost: host\r\nUser-Agent: laptime-k6\r\n" +
		fmt.Sprintf("Content-Length: %d\r\n", len(body)) + "Content-Type: application/json; charset=utf-8\r\nCookie: c=p/q\r\nX-Name: a p/q b\r\n\r\n" + body
	if got := message(&user); got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

func TestABodyThatIsNoJSONHasItsValuesAsTheyAre(t *testing.T) {
	text := `value {{users.name}} {{users.name|url}} {{users.name|json}}`
	work, message := made(t, []Request{{Name: "r", Path: "/", Body: &text}}, table(t, "name\n\"a\"\"\nb\"\n"))
	user := work.NewUser()
	work.Begin(&user, 0)
	_, _ = work.Draw(&user)
	if got, want := message(&user), "\r\n\r\nvalue a\"\nb a%22%0Ab a\\\"\\nb"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, expected %q at its end", got, want)
	}
}

func TestRowsAreTakenAsTheirUseSays(t *testing.T) {
	for _, test := range []struct {
		use    Use
		counts map[int64]int // how many of the three rows were taken how often; nil: any
		end    bool
	}{{Cycle, map[int64]int{0: 34, 1: 33, 2: 33}, false}, {Once, map[int64]int{0: 1, 1: 1, 2: 1}, true}, {Random, nil, false}} {
		feeder := table(t, "name\na\nb\nc\n")
		feeder.Use = test.use
		feeder.Share(0, 3, 7)
		counts, ended := map[int64]int{}, false
		for range 100 {
			row, ok := feeder.take()
			if ended = !ok; ended {
				break
			}
			counts[row]++
		}
		if ended != test.end || test.counts != nil && fmt.Sprint(counts) != fmt.Sprint(test.counts) {
			t.Errorf("use %d: %v, ended %v", test.use, counts, ended)
		}
		if test.use == Random && (len(counts) != 3 || counts[0] < 15 || counts[1] < 15 || counts[2] < 15) {
			t.Errorf("random: %v", counts)
		}
	}
}

func TestWhatIsDrawnAtRandomFollowsFromTheSeed(t *testing.T) {
	drawn := func(seed uint64) (rows []int64) {
		feeder, err := Numbers("n", 1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		feeder.Use = Random
		feeder.Share(0, 1000, seed)
		for range 50 {
			row, _ := feeder.take()
			rows = append(rows, row)
		}
		return rows
	}
	if !slices.Equal(drawn(1), drawn(1)) || slices.Equal(drawn(1), drawn(2)) {
		t.Error("not the same for the same seed alone")
	}
}

func TestSessionsAreMixedByTheirWeights(t *testing.T) {
	for _, test := range []struct {
		weights []int
		order   string
	}{
		{[]int{1, 1, 1}, "012"},
		{[]int{5, 5}, "01"},
		{[]int{4, 2}, "010"},
		{[]int{5, 1, 1}, "0010200"},
	} {
		var requests []Request
		var sessions []Session
		for i, weight := range test.weights {
			name := fmt.Sprint(i)
			requests = append(requests, Request{Name: name, Method: "GET", Target: "http://h", Path: "/"})
			sessions = append(sessions, Session{Name: name, Weight: weight, Steps: []string{name}})
		}
		work, err := New(requests, nil, sessions)
		if err != nil {
			t.Fatal(err)
		}
		order := ""
		for _, number := range work.Order {
			order += fmt.Sprint(number)
		}
		if order != test.order {
			t.Errorf("weights %v: %s, expected %s", test.weights, order, test.order)
		}
	}
}

// The operator keeps values too, and is tested with the same cases
// (operator/tests/verification/test_captures.py). One without a text finds nothing.
func TestCaptures(t *testing.T) {
	file, err := os.ReadFile("testdata/captures.json")
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		Head []string
		Body *string
	}
	var all struct {
		MaxBody int
		answer
		Cases []struct {
			Capture
			answer
			Text *string
		}
	}
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatal(err)
	}
	if all.MaxBody != MaxBody {
		t.Errorf("%d bytes of a body are looked at, expected %d", MaxBody, all.MaxBody)
	}
	for _, one := range all.Cases {
		if one.Head == nil {
			one.Head = all.Head
		}
		if one.Body == nil {
			one.Body = all.Body
		}
		one.Name = "it"
		work, _ := made(t, []Request{{Name: "a", Path: "/", Captures: []Capture{one.Capture}}})
		user := work.NewUser()
		head := "HTTP/1.1 200 OK\r\n" + strings.Join(one.Head, "\r\n") + "\r\n\r\n"
		ok := work.Capture(&user, 0, []byte(head), []byte(*one.Body))
		if ok != (one.Text != nil) || ok && string(user.captured[0]) != *one.Text {
			t.Errorf("%+v: %q, %v", one.Capture, user.captured[0], ok)
		}
	}
}

func TestAListIsCapturedAsItStandsThere(t *testing.T) {
	work, _ := made(t, []Request{{Name: "a", Path: "/", Captures: []Capture{{Name: "it", JSON: "/list"}}}})
	user := work.NewUser()
	if !work.Capture(&user, 0, nil, []byte(`{"list":[1, 2]}`)) || string(user.captured[0]) != "[1, 2]" {
		t.Errorf("%q", user.captured[0])
	}
}

func TestAnAnswerCannotWriteHeaders(t *testing.T) {
	requests := []Request{
		{Name: "a", Method: "GET", Target: "http://h", Path: "/", Captures: []Capture{{Name: "it", JSON: "/x"}}},
		{Name: "b", Method: "GET", Target: "http://h", Path: "/{{it}}", Headers: map[string]string{"X": "{{it}}"}},
	}
	work, err := New(requests, nil, []Session{{Name: "s", Weight: 1, Steps: []string{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	user := work.NewUser()
	if work.Capture(&user, 0, nil, []byte(`{"x":"a\r\nEvil: 1"}`)) {
		t.Error("taken")
	}
	if !work.Capture(&user, 0, nil, []byte(`{"x":"a b"}`)) {
		t.Error("not taken")
	}
}

func TestASessionMakesNoGarbage(t *testing.T) {
	text := `{"name":"{{users.name}}","n":{{n}}}`
	numbers, err := Numbers("n", 1, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	requests := []Request{
		{Name: "login", Method: "POST", Target: "http://h", Path: "/", Body: &text, Captures: []Capture{{Name: "token", JSON: "/token"}, {Name: "at", Header: "location"}}},
		{Name: "read", Method: "GET", Target: "http://h", Path: "/{{at}}", Headers: map[string]string{"Authorization": "Bearer {{token}}"}},
	}
	work, err := New(requests, []*Feeder{table(t, "name\nada\nbob\n"), numbers}, []Session{{Name: "s", Weight: 1, Steps: []string{"login", "read"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, feeder := range work.Feeders() {
		feeder.Share(0, feeder.Rows(), 1)
	}
	user := work.NewUser()
	head, body := []byte("HTTP/1.1 200 OK\r\nLocation: /items/7\r\n\r\n"), []byte(`{"id":1,"token":"0123456789abcdef0123456789"}`)
	var wire, scratch []byte
	if n := testing.AllocsPerRun(100, func() {
		work.Begin(&user, 0)
		for {
			request, _ := work.Draw(&user)
			wire = work.Messages[request].Append(wire[:0], &user, &scratch)
			if work.Captures(request) && !work.Capture(&user, request, head, body) {
				t.Fatal("not captured")
			}
			if !work.Advance(&user, true) {
				return
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations for a session", n)
	}
}

// Users who begin in the middle of their think times send as many requests in each moment as in any later one,
// whatever the times are.
func TestPausesAreThoseOfUsersWhoAreThereAlready(t *testing.T) {
	ms := time.Millisecond
	for name, thinks := range map[string][]Think{
		"always the same":      {{1000 * ms, 1000 * ms}},
		"from none on":         {{0, 1000 * ms}},
		"around a second":      {{500 * ms, 1500 * ms}},
		"of several requests":  {{0, 0}, {100 * ms, 300 * ms}, {2000 * ms, 2000 * ms}},
		"one seldom, but long": {{10 * ms, 10 * ms}, {10 * ms, 10 * ms}, {10 * ms, 10 * ms}, {4000 * ms, 4000 * ms}},
	} {
		var requests []Request
		mean := 0.0
		for i, think := range thinks {
			requests = append(requests, Request{Name: fmt.Sprint(i), Path: "/", Think: think})
			mean += (think.Least + think.Most).Seconds() / 2 / float64(len(thinks))
		}
		work, _ := made(t, requests)
		random := rand.New(rand.NewPCG(1, 2))
		pauses := work.Pauses()
		const users, slots = 100_000, 8
		var begun [slots]float64
		for range users {
			// The first requests of users who think no more than between one request and the next.
			if at := pauses.Draw(random).Seconds() / (mean / slots); at < slots {
				begun[int(at)]++
			}
		}
		for slot, got := range begun {
			// Of those who think longer than on average some are left when the mean has passed.
			const parts = 1000
			left := 0.0
			for part := range parts {
				at := (float64(slot) + (float64(part)+0.5)/parts) / slots * mean
				for _, think := range thinks {
					left += longer(think, at) / float64(len(thinks)) / parts
				}
			}
			if want := users * left / slots; math.Abs(got-want) > 0.05*want+100 {
				t.Errorf("%s: %.0f of %d users begin in slot %d, expected %.0f", name, got, users, slot, want)
			}
		}
	}
	if work, _ := made(t, []Request{{Name: "a", Path: "/"}}); work.Pauses() != nil {
		t.Error("pauses of users who do not think")
	}
}

// longer is the share of think times that are longer than so many seconds.
func longer(think Think, than float64) float64 {
	least, most := think.Least.Seconds(), think.Most.Seconds()
	switch {
	case than < least:
		return 1
	case than >= most:
		return 0
	}
	return (most - than) / (most - least)
}

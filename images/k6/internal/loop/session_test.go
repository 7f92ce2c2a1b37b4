package loop

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"laptime.dev/k6/internal/session"
)

// shop is a server with users who log in, create and read back, and notes what was done wrong.
type shop struct {
	mutex  sync.Mutex
	tokens map[string]string // who has it
	items  map[string]string // whose it is
	read   map[string]int    // how often each user read one back
	wrong  []string
	broken atomic.Int64 // logins that are refused
}

func newShop() *shop {
	return &shop{tokens: map[string]string{}, items: map[string]string{}, read: map[string]int{}}
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	user := s.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	switch {
	case r.URL.Path == "/login":
		if s.broken.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		token := fmt.Sprintf("token-%d", len(s.tokens))
		s.tokens[token] = string(body)
		_, _ = fmt.Fprintf(w, `{"user":{"name":%q},"token":%q}`, body, token)
	case user == "":
		s.wrong = append(s.wrong, r.URL.Path+" without a token")
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/items":
		id := fmt.Sprint(len(s.items))
		s.items[id] = user
		w.Header().Set("Location", "/items/"+id)
		w.WriteHeader(http.StatusCreated)
	case s.items[strings.TrimPrefix(r.URL.Path, "/items/")] != user:
		s.wrong = append(s.wrong, user+" reads "+r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	default:
		s.read[user]++
	}
}

// shopping is a session of three steps for each of so many users.
func shopping(t *testing.T, users int, use session.Use, think session.Think) ([]Request, *session.Work) {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("name\n")
	for i := range users {
		fmt.Fprintf(&rows, "user-%d\n", i)
	}
	feeder, err := session.Table("users", strings.NewReader(rows.String()))
	if err != nil {
		t.Fatal(err)
	}
	feeder.Use = use
	name := "{{users.name}}"
	bearer := map[string]string{"Authorization": "Bearer {{token}}"}
	texts := []session.Request{
		{Name: "login", Method: http.MethodPost, Path: "/login", Body: &name, Captures: []session.Capture{{Name: "token", JSON: "/token"}}, Think: think},
		{Name: "create", Method: http.MethodPost, Path: "/items", Headers: bearer, Captures: []session.Capture{{Name: "item", Header: "location", Regex: "[0-9]+"}}, Think: think},
		{Name: "read", Method: http.MethodGet, Path: "/items/{{item}}", Headers: bearer, Think: think},
	}
	for i := range texts {
		texts[i].Target, texts[i].KeepAlive = "http://test", true
	}
	work := workOf(t, texts, []*session.Feeder{feeder}, []session.Session{{Name: "shop", Weight: 1, Steps: []string{"login", "create", "read"}}})
	return []Request{
		{Name: "login", ExpectStatus: http.StatusOK},
		{Name: "create", ExpectStatus: http.StatusCreated},
		{Name: "read", ExpectStatus: http.StatusOK},
	}, work
}

// check says what the shop saw that was wrong.
func (s *shop) check(t *testing.T) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.wrong) > 0 {
		t.Errorf("%d requests were wrong, the first one: %s", len(s.wrong), s.wrong[0])
	}
}

func TestEachUserOfAClosedLoadHasASessionOfHisOwn(t *testing.T) {
	shop := newShop()
	server, requests, _ := serve(t, shop.ServeHTTP)
	list, work := shopping(t, 1000, session.Once, session.Think{})
	p := drive(t, server.Listener.Addr().String(), Plan{
		Requests: list, Work: work, Connections: 1, Total: 3000, KeepAlive: true,
	})
	shop.check(t)
	only(t, p, "", 0)
	if requests.Load() != 3000 || len(shop.read) != 1000 {
		t.Errorf("%d requests, %d users read something back, expected 3000 and 1000", requests.Load(), len(shop.read))
	}
	for user, times := range shop.read {
		if times != 1 {
			t.Errorf("%s was used %d times", user, times)
		}
	}
}

func TestSessionsOfManyConnectionsDoNotMix(t *testing.T) {
	shop := newShop()
	server, _, _ := serve(t, shop.ServeHTTP)
	list, work := shopping(t, 10, session.Cycle, session.Think{})
	for _, keepAlive := range []bool{true, false} {
		p := drive(t, server.Listener.Addr().String(), Plan{
			Requests: list, Work: work, Connections: 20, Threads: 2, Total: 6000, KeepAlive: keepAlive,
		})
		only(t, p, "", 0)
		for name, endpoint := range p.Endpoints {
			if endpoint.Requests < 1990 || endpoint.Requests > 2020 {
				t.Errorf("%d times %s, expected 2000", endpoint.Requests, name)
			}
		}
	}
	shop.check(t)
}

// A session that fails ends, and its user begins another one.
func TestAFailedStepEndsItsSession(t *testing.T) {
	shop := newShop()
	shop.broken.Store(50)
	server, _, _ := serve(t, shop.ServeHTTP)
	list, work := shopping(t, 10, session.Cycle, session.Think{})
	p := drive(t, server.Listener.Addr().String(), Plan{
		Requests: list, Work: work, Connections: 5, Threads: 1, Total: 350, KeepAlive: true,
	})
	shop.check(t)
	only(t, p, "status", 50)
	if n := p.Endpoints["login"].Requests; n < 150 || n > 155 {
		t.Errorf("%d logins, expected 50 that failed and 100 others", n)
	}
}

// What is rare has its share also where each generator goes through little more than a round of the sessions.
func TestSeveralGeneratorsTogetherSendTheSharesOfTheWeights(t *testing.T) {
	handler, seen := counting()
	server, _, _ := serve(t, handler)
	list := []Request{{Name: "often", ExpectStatus: http.StatusNoContent}, {Name: "seldom", ExpectStatus: http.StatusNoContent}}
	var texts []session.Request
	for _, r := range list {
		texts = append(texts, session.Request{Name: r.Name, Method: http.MethodGet, Target: "http://test", Path: "/" + r.Name, KeepAlive: true})
	}
	work := workOf(t, texts, nil, []session.Session{
		{Name: "often", Weight: 99, Steps: []string{"often"}}, {Name: "seldom", Weight: 1, Steps: []string{"seldom"}},
	})
	for k := range 8 {
		only(t, drive(t, server.Listener.Addr().String(), Plan{
			Requests: list, Work: work, Connections: 4, Threads: 1, Total: 125, KeepAlive: true, Generator: k, Generators: 8,
		}), "", 0)
	}
	if often, seldom := seen["/often"], seen["/seldom"]; often+seldom != 1000 || seldom < 9 || seldom > 11 {
		t.Errorf("%d and %d requests, expected 990 and 10", often, seldom)
	}
}

func TestAnAnswerWithoutWhatTheNextStepNeedsIsAnError(t *testing.T) {
	server, requests, _ := serve(t, hello)
	list, work := shopping(t, 10, session.Cycle, session.Think{})
	p := drive(t, server.Listener.Addr().String(), Plan{Requests: list, Work: work, Connections: 2, Total: 40, KeepAlive: true})
	only(t, p, "capture", 40)
	if requests.Load() != 40 || p.Endpoints["login"].Requests != 40 {
		t.Errorf("%d requests, %d logins, expected 40 of each", requests.Load(), p.Endpoints["login"].Requests)
	}
}

func TestALoadEndsWithItsRows(t *testing.T) {
	for _, plan := range []Plan{
		{Connections: 4, Total: 1000, KeepAlive: true},
		{Connections: 4, Rate: 3000, Duration: 300 * time.Millisecond, KeepAlive: true},
	} {
		shop := newShop()
		server, requests, _ := serve(t, shop.ServeHTTP)
		plan.Requests, plan.Work = shopping(t, 100, session.Once, session.Think{})
		p := drive(t, server.Listener.Addr().String(), plan)
		shop.check(t)
		if requests.Load() != 300 || len(shop.read) != 100 {
			t.Errorf("%d requests, %d users, expected 300 and 100", requests.Load(), len(shop.read))
		}
		if plan.Rate > 0 && p.Requests+p.DroppedIterations != 900 {
			t.Errorf("%d requests and %d dropped, expected 900", p.Requests, p.DroppedIterations)
		}
	}
}

// What is too late to be sent counts with the steps of the session that it would have begun.
func TestDroppedSessionsOfDifferentLengthsCountTheirOwnSteps(t *testing.T) {
	server, _, _ := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(100 * time.Millisecond) })
	var list []Request
	var texts []session.Request
	for _, name := range []string{"look", "login", "create", "read"} {
		list = append(list, Request{Name: name, ExpectStatus: http.StatusOK})
		texts = append(texts, session.Request{Name: name, Method: http.MethodGet, Target: "http://test", Path: "/", KeepAlive: true})
	}
	work := workOf(t, texts, nil, []session.Session{
		{Name: "look", Weight: 9, Steps: []string{"look"}}, {Name: "shop", Weight: 1, Steps: []string{"login", "create", "read"}},
	})
	p := drive(t, server.Listener.Addr().String(), Plan{
		Requests: list, Work: work, Connections: 1, Threads: 1, Rate: 120, Duration: time.Second, KeepAlive: true,
		Timeout: 2 * time.Second,
	})
	only(t, p, "", 0)
	if p.DroppedIterations < 60 || p.Requests+p.DroppedIterations != 120 {
		t.Errorf("%d requests and %d dropped, expected 120", p.Requests, p.DroppedIterations)
	}
	for name, want := range map[string]int64{"look": 90, "login": 10, "create": 10, "read": 10} {
		if one := p.Endpoints[name]; one.Requests+one.Dropped != want {
			t.Errorf("%s: %d requests and %d dropped, expected %d", name, one.Requests, one.Dropped, want)
		}
	}
}

// The rate of an open load is that of its requests, whatever sessions they belong to.
func TestTimedSessionsArriveAsOftenAsTheirRequestsFitTheRate(t *testing.T) {
	shop := newShop()
	server, requests, connections := serve(t, shop.ServeHTTP)
	list, work := shopping(t, 10, session.Cycle, session.Think{Least: 100 * time.Millisecond, Most: 100 * time.Millisecond})
	untilTrue(t, func(noise func() float64) (wrong []string) {
		requests.Store(0)
		connections.Store(0)
		p := drive(t, server.Listener.Addr().String(), Plan{
			Requests: list, Work: work, Connections: 100, Threads: 2, Rate: 300, Duration: time.Second, KeepAlive: true,
		})
		shop.check(t)
		only(t, p, "", 0)
		if requests.Load() != 300 || p.Endpoints["read"].Requests != 100 {
			t.Errorf("%d requests, %d of them read, expected 300 and 100", requests.Load(), p.Endpoints["read"].Requests)
		}
		// A session takes 200 ms, and 100 of them begin in a second.
		if n := connections.Load(); n < 20 || float64(n) > 30+noise()/10e3 {
			wrong = append(wrong, fmt.Sprintf("%d connections, expected 21", n))
		}
		if missing := 300 - p.CompletedInWindow; float64(missing) > 3+noise()/3e3 {
			wrong = append(wrong, fmt.Sprintf("%d of 300 answers within the window", p.CompletedInWindow))
		}
		if late := float64(decode(t, p.Endpoints["read"].Latency).ValueAtQuantile(50)); late > 20e3+noise() {
			wrong = append(wrong, complain("latency", 0.5, late, 0))
		}
		return wrong
	})
}

func TestTimedUsersOfAClosedLoadThink(t *testing.T) {
	untilTrue(t, func(noise func() float64) (wrong []string) {
		server, requests, connections := serve(t, hello)
		text := []session.Request{{
			Name: "list", Method: http.MethodGet, Target: "http://test", Path: "/", KeepAlive: true,
			Think: session.Think{Least: 50 * time.Millisecond, Most: 150 * time.Millisecond},
		}}
		p := drive(t, server.Listener.Addr().String(), Plan{
			Requests: []Request{{Name: "list", ExpectStatus: 200}}, Work: workOf(t, text, nil, nil),
			Connections: 50, Duration: time.Second, KeepAlive: true,
		})
		only(t, p, "", 0)
		if n := float64(requests.Load()); n < 470-noise()/100 || n > 530 {
			wrong = append(wrong, complain("requests", 1, n, 500))
		}
		if connections.Load() != 50 {
			t.Errorf("%d connections for 50 users", connections.Load())
		}
		return wrong
	})
}

// Users who think for an hour send next to nothing in a moment, also in the first one, with their connections there.
func TestUsersWhoThinkDoNotBeginAllAtOnce(t *testing.T) {
	hour := session.Think{Least: time.Hour, Most: time.Hour}
	for _, thinks := range []int{0, 1} {
		server, requests, connections := serve(t, hello)
		var list []Request
		var texts []session.Request
		for i, name := range []string{"first", "second"} {
			text := session.Request{Name: name, Method: http.MethodGet, Target: "http://test", Path: "/", KeepAlive: true}
			if i == thinks {
				text.Think = hour
			}
			list, texts = append(list, Request{Name: name, ExpectStatus: 200}), append(texts, text)
		}
		work := workOf(t, texts, nil, []session.Session{{Name: "s", Weight: 1, Steps: []string{"first", "second"}}})
		p := drive(t, server.Listener.Addr().String(), Plan{
			Requests: list, Work: work, Connections: 100, Duration: 300 * time.Millisecond, KeepAlive: true,
			ConnectOver: 300 * time.Millisecond,
		})
		if n := requests.Load(); n > 4 || p.Requests != n {
			t.Errorf("thinking after step %d: %d requests of 100 users", thinks, n)
		}
		if n := connections.Load(); n < 50 {
			t.Errorf("thinking after step %d: %d connections of 100 opened before", thinks, n)
		}
	}
}

func TestALoadByRequestsOfUsersWhoThinkHasThemAll(t *testing.T) {
	server, requests, _ := serve(t, hello)
	text := []session.Request{{
		Name: "list", Method: http.MethodGet, Target: "http://test", Path: "/", KeepAlive: true,
		Think: session.Think{Most: 40 * time.Millisecond},
	}}
	for _, total := range []int64{10, 55} {
		requests.Store(0)
		p := drive(t, server.Listener.Addr().String(), Plan{
			Requests: []Request{{Name: "list", ExpectStatus: 200}}, Work: workOf(t, text, nil, nil),
			Connections: 10, Total: total, KeepAlive: true,
		})
		only(t, p, "", 0)
		if requests.Load() != total || p.Responses != total {
			t.Errorf("%d requests, %d answers, expected %d", requests.Load(), p.Responses, total)
		}
	}
}

// A user who gets no answer thinks as one who gets a wrong one does, so that both are asked for as often.
func TestUsersOfAClosedLoadThinkAfterAFailureToo(t *testing.T) {
	text := []session.Request{{
		Name: "list", Method: http.MethodGet, Target: "http://test", Path: "/", KeepAlive: true,
		Think: session.Think{Least: 100 * time.Millisecond, Most: 100 * time.Millisecond},
	}}
	for answer, kind := range map[string]string{
		"": "reset",
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n": "status",
	} {
		p := drive(t, raw(t, answer), Plan{
			Requests: []Request{{Name: "list", ExpectStatus: 200}}, Work: workOf(t, text, nil, nil),
			Connections: 1, Duration: time.Second, KeepAlive: true,
		})
		only(t, p, kind, p.Requests)
		// One at the start and one after each thought that ends within the load, or fewer on a busy machine.
		if p.Requests < 2 || p.Requests > 11 {
			t.Errorf("%d requests that failed as %s, expected some 10", p.Requests, kind)
		}
	}
}

// A connection that has just been used is used again last, so that all of them have their share.
func TestConnectionsOfOpenLoadsTakeTurns(t *testing.T) {
	var mutex sync.Mutex
	var n int
	opened, seen := map[string]bool{}, map[string]int{}
	server, _, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		opened[r.RemoteAddr] = true
		first := len(opened) < 8
		if n++; n > 300 {
			seen[r.RemoteAddr]++
		}
		mutex.Unlock()
		if first {
			time.Sleep(100 * time.Millisecond) // so that all are opened
		}
	})
	p := drive(t, server.Listener.Addr().String(), Plan{
		Connections: 8, Threads: 1, Rate: 800, Duration: time.Second, KeepAlive: true,
	})
	only(t, p, "", 0)
	mutex.Lock()
	defer mutex.Unlock()
	for address := range opened {
		if times := seen[address]; times < 20 || times > 200 {
			t.Errorf("%s was used %d times of the last 500, expected some 63: %v", address, times, seen)
		}
	}
}

// Without a need no connection is opened, however many are allowed.
func TestTimedOpenLoadsUseTheConnectionsThatAreThere(t *testing.T) {
	server, _, connections := serve(t, hello)
	untilTrue(t, func(func() float64) (wrong []string) {
		connections.Store(0)
		drive(t, server.Listener.Addr().String(), Plan{
			Connections: 100, Threads: 1, Rate: 200, Duration: time.Second, KeepAlive: true,
		})
		if n := connections.Load(); n > 80 {
			wrong = append(wrong, fmt.Sprintf("%d connections for 200 requests of which hardly two were under way", n))
		}
		return wrong
	})
}

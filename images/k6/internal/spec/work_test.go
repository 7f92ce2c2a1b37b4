package spec

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	readCycle  = `{"name":"read","path":"/tasks/{id}","ids":{"first":1,"last":100,"use":"cycle"}}`
	deleteOnce = `{"name":"delete","method":"DELETE","path":"/tasks/{id}","expectStatus":204,"ids":{"first":1,"last":100,"use":"once"}}`
)

func parse(requests, load string) (*Trial, error) {
	return Parse(fmt.Sprintf(`{"trial":"t","target":"http://server:80","warmupSeconds":3,"requests":[%s],"load":%s}`, requests, load), "")
}

func closed(requests int) string {
	return fmt.Sprintf(`{"closed":{"connections":1,"requests":%d,"keepAlive":true}}`, requests)
}

func TestIdsThatCannotWorkAreRefusedWithAReason(t *testing.T) {
	request := func(path, ids string) string {
		return fmt.Sprintf(`{"name":"read","path":%q,"ids":%s}`, path, ids)
	}
	for _, test := range []struct{ requests, load, says string }{
		{`{"name":"read","path":"/tasks/{id}"}`, closed(1), "{id}: ids are missing"},
		{request("/tasks", `{"first":1,"last":2,"use":"once"}`), closed(1), "neither path nor body"},
		{request("/{id}", `{"first":1,"last":2,"use":"twice"}`), closed(1), `"twice" is neither`},
		{request("/{id}", `{"first":2,"last":1,"use":"once"}`), closed(1), "2 … 1 holds no number"},
		{deleteOnce, closed(101), "101 requests, but each row of ids of delete is used once: at most 100"},
		{deleteOnce, `{"closed":{"connections":1,"durationSeconds":5}}`, "give closed.requests, not a duration"},
		{deleteOnce, `{"open":{"rate":50.5,"durationSeconds":2,"maxConnections":9}}`, "101 requests"},
		{deleteOnce, `{"ramp":{"from":1,"to":100,"durationSeconds":2,"maxConnections":9}}`, "101 requests"},
		{deleteOnce, `{"saturation":{"p99Seconds":1,"startRate":1,"maxRate":9,"stepSeconds":1,"maxConnections":9}}`, "not a duration or a search"},
		// Each of two requests may be sent a few times more than its share.
		{readCycle + "," + deleteOnce, closed(185), "at most 184"},
	} {
		_, err := parse(test.requests, test.load)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s under %s: %v, expected %q", test.requests, test.load, err, test.says)
		}
	}
}

func TestMoreRowsThanAnyLoadNeedsAreNotTooFew(t *testing.T) {
	// As many as a feeder may have, and one request of 2,000 uses one of them.
	const most = `{"name":"delete","method":"DELETE","path":"/tasks/{id}","weight":1,"ids":{"first":0,"last":9007199254740992,"use":"once"}},
		{"name":"a","path":"/a","weight":999},{"name":"b","path":"/b","weight":1000}`
	for _, load := range []string{closed(1000), `{"open":{"rate":10,"durationSeconds":5,"maxConnections":9}}`} {
		trial, err := parse(most, load)
		if err != nil {
			t.Errorf("%s: %v", load, err)
			continue
		}
		if duration, requests := trial.Warmup(); duration != 3*time.Second || requests < 0 {
			t.Errorf("%s: a warm-up of %v and %d requests", load, duration, requests)
		}
	}
}

func TestTheWarmupLeavesTheMeasuredPhaseItsIds(t *testing.T) {
	for _, test := range []struct {
		requests, load string
		duration       time.Duration
		most           int64
	}{
		{readCycle, closed(5000), 3 * time.Second, 0},
		{deleteOnce, closed(60), 3 * time.Second, 40},
		{deleteOnce, closed(100), 0, 0},
		{readCycle + "," + deleteOnce, closed(100), 3 * time.Second, 84},
		{deleteOnce, `{"open":{"rate":10,"durationSeconds":5,"maxConnections":9}}`, 3 * time.Second, 0},
		{deleteOnce, `{"open":{"rate":10,"durationSeconds":9,"maxConnections":9}}`, 900 * time.Millisecond, 0},
		{deleteOnce, `{"ramp":{"from":10,"to":20,"durationSeconds":6,"maxConnections":9}}`, 900 * time.Millisecond, 0},
	} {
		trial, err := parse(test.requests, test.load)
		if err != nil {
			t.Fatal(err)
		}
		if duration, most := trial.Warmup(); duration != test.duration || most != test.most {
			t.Errorf("%s under %s: %v and %d requests, expected %v and %d",
				test.requests, test.load, duration, most, test.duration, test.most)
		}
	}
}

// wiresOf takes all rows that a generator has for the first request, and gives what it would send.
func wiresOf(t *testing.T, trial *Trial, segment Segment) []string {
	t.Helper()
	work := trial.Work(segment)
	user := work.NewUser()
	var wires []string
	var scratch []byte
	for range work.Feeders()[0].Part() {
		work.Begin(&user, 0)
		if _, ok := work.Draw(&user); !ok {
			t.Fatal("a feeder has fewer rows than it says")
		}
		wires = append(wires, string(work.Messages[0].Append(nil, &user, &scratch)))
	}
	return wires
}

func TestARequestIsMadeForEachOfItsIds(t *testing.T) {
	trial, err := parse(`{"name":"r","method":"PUT","path":"/tasks/{id}","body":"{\"id\":{id}}","ids":{"first":9,"last":11,"use":"once"}}`, closed(3))
	if err != nil {
		t.Fatal(err)
	}
	for i, wire := range wiresOf(t, trial, Segment{0, 1}) {
		id := []string{"9", "10", "11"}[i]
		want := fmt.Sprintf("PUT /tasks/%s HTTP/1.1\r\nHost: server:80\r\nUser-Agent: laptime-k6\r\nContent-Length: %d\r\n\r\n{\"id\":%s}",
			id, len(`{"id":}`)+len(id), id)
		if wire != want {
			t.Errorf("%q, expected %q", wire, want)
		}
	}
}

func sharing(requests, load string, generators int) (*Trial, error) {
	return Parse(fmt.Sprintf(`{"trial":"t","target":"http://server:80","warmupSeconds":3,"requests":[%s],"load":%s,
		"generators":{"count":%d,"meet":"a:1"}}`, requests, load, generators), "")
}

func TestGeneratorsShareTheIds(t *testing.T) {
	const load = `{"closed":{"connections":9,"requests":%d,"keepAlive":true}}`
	// The smallest of three parts of 100 has 33.
	if _, err := sharing(deleteOnce, fmt.Sprintf(load, 100), 3); err == nil || !strings.Contains(err.Error(), "at most 99") {
		t.Errorf("100 requests for 3 parts of 100 ids: %v", err)
	}
	trial, err := sharing(deleteOnce, fmt.Sprintf(load, 70), 3)
	if err != nil {
		t.Fatal(err)
	}
	// One of them sends 24 of its 33 in the measured phase.
	if duration, most := trial.Warmup(); duration != 3*time.Second || most != 9 {
		t.Errorf("warm-up: %v and %d requests, expected 3s and 9", duration, most)
	}
	seen := map[string]int{}
	for index := range 3 {
		if trial, err = sharing(deleteOnce, fmt.Sprintf(load, 70), 3); err != nil {
			t.Fatal(err)
		}
		for _, wire := range wiresOf(t, trial, Segment{index, 3}) {
			seen[wire]++
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d ids are sent by the generators, expected 100", len(seen))
	}
	for wire, times := range seen {
		if times != 1 {
			t.Errorf("%d generators send %q", times, wire)
		}
	}
}

func TestTheWarmupOfAnOpenLoadLeavesEachGeneratorItsIds(t *testing.T) {
	trial, err := sharing(deleteOnce, `{"open":{"rate":10,"durationSeconds":8,"maxConnections":9}}`, 2)
	if err != nil {
		t.Fatal(err)
	}
	// 10 of 50 are left to each, which sends 5 a second.
	if duration, most := trial.Warmup(); duration != 1800*time.Millisecond || most != 0 {
		t.Errorf("warm-up: %v and %d requests, expected 1.8s and 0", duration, most)
	}
}

func TestTooFewIdsToShareAreSentByEachGenerator(t *testing.T) {
	const two = `{"name":"r","path":"/tasks/{id}","ids":{"first":1,"last":2,"use":"cycle"}}`
	for index := range 3 {
		trial, err := sharing(two, `{"closed":{"connections":3,"requests":9}}`, 3)
		if err != nil {
			t.Fatal(err)
		}
		if wires := wiresOf(t, trial, Segment{index, 3}); len(wires) != 2 {
			t.Errorf("generator %d has %d ids", index, len(wires))
		}
	}
}

func TestFeedersDrawByASeedOfTheirOwnWhereTheyHaveOne(t *testing.T) {
	drawn := func(seeds string) string {
		trial, err := Parse(`{"trial":"t","target":"http://server:80",`+seeds+`"requests":[{"name":"r","path":"/{{n}}"}],
			"feeders":[{"name":"n","range":{"first":1,"last":50},"use":"random","per":"request"}],"load":`+closed(1)+`}`, "")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(seeds, `"seed":1`) && trial.Seed != 1 {
			t.Errorf("%s: arrivals have the seed %d", seeds, trial.Seed)
		}
		return strings.Join(wiresOf(t, trial, Segment{0, 1}), "")
	}
	if own := drawn(`"seed":1,"feederSeed":7,`); own != drawn(`"seed":7,`) || own == drawn(`"seed":1,`) {
		t.Error("feeders do not follow feederSeed")
	}
	if drawn(`"seed":1,"feederSeed":0,`) != drawn("") {
		t.Error("0 is no seed")
	}
}

// What is written of a request that is the same each time is what net/http writes.
func TestARequestWithoutValuesIsWrittenOnce(t *testing.T) {
	trial, err := parse(`{"name":"r","method":"POST","path":"/a%20b?c=%7Bd%7D","headers":{"X-B":"2","X-A":"1","host":"h"},
		"cookies":{"b":"2","a":"1"},"body":"{user {id}}"}`, closed(3))
	if err != nil {
		t.Fatal(err)
	}
	const want = "POST /a%20b?c=%7Bd%7D HTTP/1.1\r\nHost: h\r\nUser-Agent: laptime-k6\r\nContent-Length: 11\r\n" +
		"Cookie: a=1; b=2\r\nX-A: 1\r\nX-B: 2\r\n\r\n{user {id}}"
	if wire := string(trial.Work(Segment{0, 1}).Messages[0].Fixed()); wire != want {
		t.Errorf("%q, expected %q", wire, want)
	}
}

const (
	login  = `{"name":"login","method":"POST","path":"/login","body":"{{users.name}}","captures":[{"name":"token","json":"/token"}]}`
	create = `{"name":"create","method":"POST","path":"/items","headers":{"authorization":"Bearer {{token}}"},"captures":[{"name":"item","header":"Location","regex":"[0-9]+"}]}`
	read   = `{"name":"read","path":"/items/{{item}}","headers":{"authorization":"Bearer {{token}}"}}`
	shop   = `{"name":"shop","steps":["login","create","read"]}`
	users  = `{"name":"users","csv":{"text":"name,age\nada,36\n"}}`
)

func work(requests, feeders, sessions, load string) error {
	_, err := Parse(fmt.Sprintf(`{"trial":"t","target":"http://server:80","requests":[%s],"feeders":[%s],"sessions":[%s],"load":%s}`,
		requests, feeders, sessions, load), "")
	return err
}

func TestASessionThatFitsIsTaken(t *testing.T) {
	if err := work(login+","+create+","+read, users, shop, closed(9)); err != nil {
		t.Error(err)
	}
}

func TestWorkThatCannotBeDoneIsRefusedWithAReason(t *testing.T) {
	const three = login + "," + create + "," + read
	request := func(more string) string { return `{"name":"r","path":"/` + more + `}` }
	for _, test := range []struct{ requests, feeders, sessions, says string }{
		{request(`{{user"`), "", "", "no }} follows"},
		{request(`{{}}"`), "", "", "write a name, such as {{token}}"},
		{request(`{{users name}}"`), users, "", "write a name"},
		{request(`{{users.name|hex}}"`), users, "", `"hex" is no encoding; write raw, url or json`},
		{request(`{{user.name}}"`), users, "", "neither a feeder nor captured by a request; there is {{users.name}}, {{users.age}}"},
		{request(`{{user}}"`), "", "", "there is none: add feeders or captures"},
		{request(`{{users}}"`), users, "", `feeder users has no column ""; it has {{users.name}}, {{users.age}}`},
		{request(`{{users.mail}}"`), users, "", `has no column "mail"`},
		{request(`{{n.x}}"`), `{"name":"n","range":{"first":1,"last":2}}`, "", "feeder n has no columns; write {{n}}"},
		{three, users, `{"name":"shop","steps":["create","login","read"]}`, "step create: {{token}} is captured by no step before it"},
		{three, users, "", "step create: {{token}} is captured by no step before it"},
		{three, users, `{"name":"shop","steps":["login","create"]}`, "read is a step of no session"},
		{three, users, `{"name":"shop","steps":["login","create","red"]}`, "read is a step of no session"},
		{login, users, `{"name":"shop","steps":["login","red"]}`, `step "red": no request is called so`},
		{login, users, `{"name":"shop","steps":["login"],"weight":-1}`, "weight: -1 is not at least 1"},
		{login, users, `{"name":"","steps":["login"]}`, "sessions[0].name"},
		{`{"name":"a","path":"/","weight":20000},{"name":"b","path":"/","weight":1}`, "", "", "they add up to 20001"},
		{`{"name":"a","path":"/","weight":2}`, "", `{"name":"s","steps":["a"]}`, "write it at the sessions"},
		{request(`","thinkSeconds":{"min":3,"max":2}`), "", "", "write 0 <= min <= max"},
		{request(`","captures":[{"name":"t"}]`), "", "", "give one of json, header and cookie"},
		{request(`","captures":[{"name":"t","json":"/a","header":"b"}]`), "", "", "give one of json, header and cookie"},
		{request(`","captures":[{"name":"t","json":"token"}]`), "", "", "no JSON pointer; write one such as /token"},
		{request(`","captures":[{"name":"t","regex":"("}]`), "", "", "missing closing )"},
		{request(`","captures":[{"name":"users","json":"/t"}]`), users, "", "that no feeder has"},
		{request(`","headers":{"a b":"c"}`), "", "", `header "a b"`},
		{request(`","headers":{"a":"b\r\nc: d"}`), "", "", `header "a"`},
		{request(`"`), `{"name":"u","csv":{"text":"name\n"}}`, "", "no row after the names of the columns"},
		{request(`"`), `{"name":"u","csv":{"text":"\n"}}`, "", "csv: empty"},
		{request(`"`), `{"name":"u","csv":{"text":"a,a\n1,2\n"}}`, "", "column 2 is called"},
		{request(`"`), `{"name":"u","csv":{"text":"a,b\n1\n"}}`, "", "wrong number of fields"},
		{request(`"`), `{"name":"u","csv":{"file":"/nowhere.csv"}}`, "", "no such file"},
		{request(`"`), `{"name":"u","values":[]}`, "", "values: empty"},
		{request(`"`), `{"name":"u"}`, "", "exactly one of csv, range and values"},
		{request(`"`), `{"name":"u","values":["a"],"use":"twice"}`, "", "write cycle, once or random"},
		{request(`"`), `{"name":"u","values":["a"],"per":"user"}`, "", "write session or request"},
		{request(`"`), `{"name":"u","values":["a"]},{"name":"u","values":["a"]}`, "", "write different names"},
		{request(`","headers":{"a":"{{u}}"}`), `{"name":"u","values":["a\r\nb"]}`, "", "feeder u, row 1"},
		{request(`","cookies":{"a":"{{u}}"}`), `{"name":"u","values":["a","b;c"]}`, "", "feeder u, row 2"},
		{request(`{{u|raw}}"`), `{"name":"u","values":["a b"]}`, "", "feeder u, row 1"},
	} {
		err := work(test.requests, test.feeders, test.sessions, closed(9))
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s with %s and %s: %v, expected %q", test.requests, test.feeders, test.sessions, err, test.says)
		}
	}
}

func TestRowsThatAreUsedOnceLastForTheSessions(t *testing.T) {
	const three = login + "," + create + "," + read
	rows := `{"name":"users","use":"once","csv":{"text":"name\n` + strings.Repeat(`ada\n`, 100) + `"}}`
	// Of 99 sessions that are reckoned with, 8 may be those of threads that begin elsewhere, and one has begun.
	if err := work(three, rows, shop, closed(273)); err != nil {
		t.Error(err)
	}
	if err := work(three, rows, shop, closed(274)); err == nil || !strings.Contains(err.Error(), "each row of users is used once: at most 273") {
		t.Error(err)
	}
}

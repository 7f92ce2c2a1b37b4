package spec

import (
	"bytes"
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
	return Parse(fmt.Sprintf(`{"trial":"t","target":"http://server:80","warmupSeconds":3,"requests":[%s],"load":%s}`, requests, load))
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
		{`{"name":"read","path":"/","body":"{id}"}`, closed(1), "{id}: ids are missing"},
		{request("/tasks", `{"first":1,"last":2,"use":"once"}`), closed(1), "neither path nor body"},
		{request("/{id}", `{"first":1,"last":2,"use":"twice"}`), closed(1), `"twice" is neither`},
		{request("/{id}", `{"first":2,"last":1,"use":"once"}`), closed(1), "2 … 1 are not"},
		{request("/{id}", `{"first":1,"last":2000000,"use":"once"}`), closed(1), "are not 1 … 1000000"},
		{deleteOnce, closed(101), "101 requests, but a request uses each of its ids once: at most 100"},
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

func TestARequestIsRenderedForEachOfItsIds(t *testing.T) {
	body := `{"id":{id}}`
	request := Request{Name: "r", Method: "PUT", Path: "/tasks/{id}", Body: &body, Ids: &Ids{First: 9, Last: 11}}
	wires, err := request.Wires("http://server:80", true, Segment{0, 1})
	if err != nil || len(wires) != 3 {
		t.Fatalf("%d wires, %v", len(wires), err)
	}
	for i, id := range []string{"9", "10", "11"} {
		if !bytes.HasPrefix(wires[i], []byte("PUT /tasks/"+id+" HTTP/1.1\r\n")) {
			t.Errorf("the request line of %s is not in %q", id, wires[i])
		}
		want := fmt.Sprintf("Content-Length: %d\r\n", len(`{"id":}`)+len(id))
		if !bytes.Contains(wires[i], []byte(want)) || !bytes.HasSuffix(wires[i], []byte(`{"id":`+id+`}`)) {
			t.Errorf("%q is not the body of %s", wires[i], id)
		}
	}
}

func sharing(requests, load string, generators int) (*Trial, error) {
	return Parse(fmt.Sprintf(`{"trial":"t","target":"http://server:80","warmupSeconds":3,"requests":[%s],"load":%s,
		"generators":{"count":%d,"meet":"a:1"}}`, requests, load, generators))
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
		wires, err := trial.Requests[0].Wires("http://server:80", true, Segment{index, 3})
		if err != nil || len(wires) < 33 {
			t.Fatalf("%d wires, %v", len(wires), err)
		}
		for _, wire := range wires {
			seen[string(wire)]++
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
	request := Request{Name: "r", Method: "GET", Path: "/tasks/{id}", Ids: &Ids{First: 1, Last: 2, Use: useCycle}}
	for index := range 3 {
		if wires, err := request.Wires("http://server:80", true, Segment{index, 3}); err != nil || len(wires) != 2 {
			t.Errorf("generator %d: %d wires, %v", index, len(wires), err)
		}
	}
}

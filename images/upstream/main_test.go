package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTheAnswerHasExactlyTheSizeAskedFor(t *testing.T) {
	for _, size := range []int{leastBytes, leastBytes + 1, 5645, 5646, 100_003, mostBytes} {
		document, err := users(size)
		if err != nil {
			t.Fatal(err)
		}
		var list []user
		if err := json.Unmarshal(document, &list); err != nil {
			t.Fatal(err)
		}
		if len(document) != size || len(list) == 0 || list[len(list)-1].ID != len(list) {
			t.Errorf("%d bytes, %d users, expected %d bytes", len(document), len(list), size)
		}
		again, err := users(size)
		if err != nil || !bytes.Equal(document, again) {
			t.Errorf("%d bytes are not the same a second time", size)
		}
	}
}

func TestTheUsualAnswerHasTenUsers(t *testing.T) {
	document, err := users(5645)
	if err != nil {
		t.Fatal(err)
	}
	var list []user
	if err := json.Unmarshal(document, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 9 || len(list) > 11 {
		t.Errorf("%d users", len(list))
	}
}

func TestTooFewBytesForAUserAreRefused(t *testing.T) {
	if _, err := users(100); err == nil {
		t.Error("100 bytes were enough")
	}
}

func TestAnswersTakeTheLatencyHoweverManyAskAtOnce(t *testing.T) {
	const latency, clients = 200 * time.Millisecond, 100
	handler, err := newHandler(latency, 5645)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	var asking sync.WaitGroup
	start := time.Now()
	for range clients {
		asking.Add(1)
		go func() {
			defer asking.Done()
			began := time.Now()
			response, err := http.Get(server.URL + "/users")
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || len(body) != 5645 || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
				t.Errorf("%d bytes of %s, %v", len(body), response.Header.Get("Content-Type"), err)
			}
			if took := time.Since(began); took < latency {
				t.Errorf("answered after %v", took)
			}
		}()
	}
	asking.Wait()
	// One after the other they would take a hundred times as long.
	if took := time.Since(start); took > clients/4*latency {
		t.Errorf("all together took %v", took)
	}
}

func TestItIsHealthyAtOnceAndKnowsNothingElse(t *testing.T) {
	handler, err := newHandler(mostLatency, 5645)
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{"/healthz": 200, "/other": 404, "/": 404} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code != status {
			t.Errorf("%s answers %d, expected %d", path, recorder.Code, status)
		}
	}
}

func TestAnAddressCanHaveALatencyOfItsOwn(t *testing.T) {
	handler, err := newHandler(mostLatency, 5645)
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{
		"/after/20ms/users":  200,
		"/after/0s/users":    200,
		"/after/10.1s/users": 400,
		"/after/-1s/users":   400,
		"/after/20/users":    400,
		"/after/users":       404,
	} {
		recorder, began := httptest.NewRecorder(), time.Now()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code != status {
			t.Errorf("%s answers %d, expected %d", path, recorder.Code, status)
		}
		if took := time.Since(began); path == "/after/20ms/users" && took < 20*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		if status == 200 && recorder.Body.Len() != 5645 {
			t.Errorf("%s answers %d bytes", path, recorder.Body.Len())
		}
	}
}

func TestARequestUnderWayIsAnsweredBeforeItEnds(t *testing.T) {
	handler, err := newHandler(300*time.Millisecond, 5645)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			handler.ServeHTTP(w, r)
		}))
	}()
	go func() {
		<-begun
		stop()
	}()
	response, err := http.Get("http://" + listener.Addr().String() + "/users")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || len(body) != 5645 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestSettingsThatCannotBeAreNamed(t *testing.T) {
	for name, values := range map[string][]string{
		"PORT":            {"0", "http", "65536"},
		"LATENCY_SECONDS": {"-1", "NaN", "11", "50ms"},
		"ANSWER_BYTES":    {"599", "1000001", "5.6k"},
	} {
		for _, value := range values {
			_, err := read(func(asked string) string {
				if asked == name {
					return value
				}
				return ""
			})
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
	if found, err := read(func(string) string { return "" }); err != nil || found != (settings{8080, 50 * time.Millisecond, 5645}) {
		t.Errorf("%+v, %v", found, err)
	}
}

package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Class is a share of the requests and the time that each of them takes.
type Class struct {
	UpTo float64 // of all requests, from the end of the class before
	Time time.Duration
}

func parseClasses(text string) ([]Class, error) {
	var classes []Class
	upTo := 0.0
	for part := range strings.SplitSeq(text, ",") {
		share, took, found := strings.Cut(part, ":")
		if !found {
			return nil, fmt.Errorf("services: %q is not share:time", part)
		}
		number, err := strconv.ParseFloat(share, 64)
		if err != nil {
			return nil, fmt.Errorf("services: %w", err)
		}
		class := Class{Time: 0}
		if class.Time, err = time.ParseDuration(took); err != nil {
			return nil, fmt.Errorf("services: %w", err)
		}
		upTo += number
		class.UpTo = upTo
		classes = append(classes, class)
	}
	return classes, nil
}

// Endpoint is what is asked for under one path.
type Endpoint struct {
	Name    string
	Classes []Class
	count   int64
}

// endpoints are those of flags "name=share:time,..."; a name is a path without its slash.
type endpoints []*Endpoint

// String implements flag.Value.
func (e *endpoints) String() string { return "" }

// Set implements flag.Value.
func (e *endpoints) Set(text string) error {
	name, services, _ := strings.Cut(text, "=")
	classes, err := parseClasses(services)
	*e = append(*e, &Endpoint{Name: name, Classes: classes})
	return err
}

// Served is one request: which, when it arrived and when its answer left, in unix time, nanoseconds.
type Served struct {
	Of            *Endpoint
	Arrived, Left int64
}

// Script decides when each request ends. The schedule does not depend on how quickly threads wake
// up, so that service times and capacity are exact.
type Script struct {
	Endpoints         []*Endpoint
	StallAfter, Stall time.Duration
	// What a worker does in a time is more or less by up to this share, anew in each stretch of time and on
	// average exactly what it is without.
	Vary float64

	mutex  sync.Mutex
	free   []int64 // when each worker is free; none: as many workers as needed
	first  int64
	served []Served
}

// The fractional parts of its multiples fill 0…1 evenly in any stretch of requests.
const goldenRatio = 0.6180339887498949

// Of gives the endpoint of a path; the last one is that of all paths that have none.
func (s *Script) Of(path string) *Endpoint {
	for _, one := range s.Endpoints {
		if strings.TrimPrefix(path, "/") == one.Name {
			return one
		}
	}
	return s.Endpoints[len(s.Endpoints)-1]
}

// Begin takes in a request that arrived now and gives the moment at which its answer leaves.
func (s *Script) Begin(of *Endpoint, arrived int64) int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.first == 0 {
		s.first = arrived
	}
	of.count++
	place := float64(of.count) * goldenRatio
	place -= float64(int64(place))
	took := of.Classes[len(of.Classes)-1].Time
	for _, class := range of.Classes {
		if place < class.UpTo {
			took = class.Time
			break
		}
	}
	begin := arrived
	if stall := s.first + int64(s.StallAfter); s.Stall > 0 && begin >= stall {
		begin = max(begin, stall+int64(s.Stall))
	}
	if len(s.free) == 0 {
		return begin + int64(took)
	}
	next := 0
	for i := range s.free {
		if s.free[i] < s.free[next] {
			next = i
		}
	}
	begin = max(begin, s.free[next])
	s.free[next] = begin + int64(float64(took)/s.pace(begin))
	return s.free[next]
}

// stretch is short beside a step of a search, so that each of them holds some twenty.
const stretch = 200 * time.Millisecond

// pace is how much workers do at a time, around 1. Its values fill 1 - Vary … 1 + Vary evenly.
func (s *Script) pace(at int64) float64 {
	place := float64((at-s.first)/int64(stretch)) * goldenRatio
	place -= float64(int64(place))
	return 1 + s.Vary*(2*place-1)
}

// End notes a request whose answer has left, and that arrived with its connection, where it is said
// when that was asked for. It waits for the notes of others: before an answer it would make that late.
func (s *Script) End(of *Endpoint, arrived, called, left int64) {
	if called != 0 {
		arrived = min(arrived, called)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.served = append(s.served, Served{of, arrived, left})
}

// Served gives all requests so far.
func (s *Script) Served() []Served {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.served
}

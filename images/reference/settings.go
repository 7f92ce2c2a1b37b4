package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// settings is what one request costs, and how many there may be at once.
type settings struct {
	port        int
	workers     int // threads that run Go code at once
	databaseURL string
	connections int           // of the pool
	slots       int           // requests that are worked on at once; 0: all
	hold        time.Duration // in a slot, without any CPU
	burn        time.Duration // of CPU time in this process
	pause       time.Duration // in the database connection, without any CPU
	rows        int           // that Postgres makes and counts: CPU of the database
	processes   int           // above 1: each computes on one thread, and the first has most connections
	oneRow      bool          // the pause is in a lock of one row, which every request takes
}

// read takes the settings from the environment; its error says which variable is wrong.
func read() (settings, error) {
	s := settings{databaseURL: os.Getenv("DATABASE_URL")}
	if s.databaseURL == "" {
		return s, fmt.Errorf("DATABASE_URL is missing: the answers come from a database")
	}
	for name, number := range map[string]struct {
		to        *int
		otherwise int
	}{
		"PORT":                 {&s.port, 8080},
		"WORKERS":              {&s.workers, 1},
		"DATABASE_CONNECTIONS": {&s.connections, 5},
		"SLOTS":                {&s.slots, 0},
		"ROWS":                 {&s.rows, 0},
		"PROCESSES":            {&s.processes, 1},
	} {
		*number.to = number.otherwise
		if text := os.Getenv(name); text != "" {
			value, err := strconv.Atoi(text)
			if err != nil || value < 0 {
				return s, fmt.Errorf("%s is %q: write a whole number", name, text)
			}
			*number.to = value
		}
	}
	switch text := os.Getenv("LOCK"); text {
	case "":
	case "row":
		s.oneRow = true
	default:
		return s, fmt.Errorf("LOCK is %q: write row, or leave it out", text)
	}
	for name, to := range map[string]*time.Duration{"HOLD": &s.hold, "BURN": &s.burn, "PAUSE": &s.pause} {
		if text := os.Getenv(name); text != "" {
			value, err := time.ParseDuration(text)
			if err != nil || value < 0 {
				return s, fmt.Errorf("%s is %q: write a time such as 5ms", name, text)
			}
			*to = value
		}
	}
	return s, nil
}

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// settings is what the environment says.
type settings struct {
	port                int
	workers             int
	accessLog           bool
	databaseURL         string // empty: the run has no database
	databaseConnections int
	preparedStatements  bool
	upstreamURL         string // empty: the run has no upstream
	profilePort         int    // 0: nobody asks for a profile
	host                string // all addresses of the pod, of the family that it has
}

// readSettings reads the variables of docs/servers.md; its error names one that cannot be.
func readSettings(variable func(string) string) (settings, error) {
	reader := reader{variable: variable}
	read := settings{
		port:                reader.atLeastOne("PORT", 8080),
		workers:             reader.atLeastOne("WORKERS", 1),
		accessLog:           reader.truth("ACCESS_LOG", false),
		databaseURL:         variable("DATABASE_URL"),
		databaseConnections: reader.atLeastOne("DATABASE_CONNECTIONS", 5),
		preparedStatements:  reader.truth("DATABASE_PREPARED_STATEMENTS", true),
		upstreamURL:         variable("UPSTREAM_URL"),
		profilePort:         reader.atLeastOne("PROFILE_PORT", 0),
		host:                "0.0.0.0",
	}
	if strings.Contains(variable("POD_IP"), ":") {
		read.host = "::"
	}
	return read, reader.err
}

// reader keeps the first error of several variables.
type reader struct {
	variable func(string) string
	err      error
}

func (r *reader) atLeastOne(name string, otherwise int) int {
	text := r.variable(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	if (err != nil || value < 1) && r.err == nil {
		r.err = fmt.Errorf("%s must be a whole number of at least 1, not %q", name, text)
	}
	return value
}

func (r *reader) truth(name string, otherwise bool) bool {
	switch text := r.variable(name); text {
	case "":
		return otherwise
	case "true", "false":
		return text == "true"
	default:
		if r.err == nil {
			r.err = fmt.Errorf("%s must be true or false, not %q", name, text)
		}
		return otherwise
	}
}

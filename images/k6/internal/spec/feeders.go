package spec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"laptime.dev/k6/internal/session"
)

// Feeder gives values to the templates of requests: exactly one of csv, range and values.
type Feeder struct {
	Name   string   `json:"name"`
	CSV    *CSV     `json:"csv"`
	Range  *Range   `json:"range"`
	Values []string `json:"values"`
	Use    string   `json:"use"` // "cycle" (default), "once" or "random"
	Per    string   `json:"per"` // "session" (default) or "request"
}

// CSV is a table whose first line names its columns: as it is, or in a file.
type CSV struct {
	Text string `json:"text"`
	File string `json:"file"`
}

// Range is the whole numbers from First to Last.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Ids are whole numbers that {id} in a path or a body stands for: short for a range with a row for
// each request.
type Ids struct {
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Use   string `json:"use"` // "cycle" or "once"
}

const maxFeederBytes = 64 << 20

var uses = map[string]session.Use{"": session.Cycle, "cycle": session.Cycle, "once": session.Once, "random": session.Random}

func (f *Feeder) make() (*session.Feeder, error) {
	use, known := uses[f.Use]
	switch {
	case !known:
		return nil, fmt.Errorf("use: %q; write cycle, once or random", f.Use)
	case f.Per != "" && f.Per != "session" && f.Per != "request":
		return nil, fmt.Errorf("per: %q; write session or request", f.Per)
	}
	made, err := f.rows()
	if err != nil {
		return nil, err
	}
	made.Use, made.PerRequest = use, f.Per == "request"
	return made, nil
}

func (f *Feeder) rows() (*session.Feeder, error) {
	given := 0
	for _, is := range []bool{f.CSV != nil, f.Range != nil, f.Values != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, errors.New("give exactly one of csv, range and values")
	case f.Range != nil:
		return session.Numbers(f.Name, f.Range.First, f.Range.Last)
	case f.Values != nil:
		return session.Values(f.Name, f.Values)
	case (f.CSV.Text == "") == (f.CSV.File == ""):
		return nil, errors.New("csv: give exactly one of text and file, not empty")
	case f.CSV.Text != "":
		return session.Table(f.Name, strings.NewReader(f.CSV.Text))
	}
	file, err := os.Open(f.CSV.File)
	if err != nil {
		return nil, fmt.Errorf("csv.file: %w", err)
	}
	defer func() { _ = file.Close() }()
	if about, err := file.Stat(); err == nil && about.Size() > maxFeederBytes {
		return nil, fmt.Errorf("csv.file: %s has more than %d MiB", f.CSV.File, maxFeederBytes>>20)
	}
	return session.Table(f.Name, io.LimitReader(file, maxFeederBytes))
}

func (r *Request) ids() (*session.Feeder, error) {
	wanted := strings.Contains(r.Path, session.ShortID) || r.Body != nil && strings.Contains(*r.Body, session.ShortID)
	switch {
	case r.Ids == nil:
		return nil, nil
	case !wanted:
		return nil, fmt.Errorf("ids: neither path nor body holds %s", session.ShortID)
	case r.Ids.Use != "cycle" && r.Ids.Use != "once":
		return nil, fmt.Errorf("ids.use: %q is neither cycle nor once", r.Ids.Use)
	}
	ids, err := session.Numbers("ids of "+r.Name, r.Ids.First, r.Ids.Last)
	if err != nil {
		return nil, fmt.Errorf("ids, %w", err)
	}
	ids.Use, ids.PerRequest = uses[r.Ids.Use], true
	return ids, nil
}

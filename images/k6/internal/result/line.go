package result

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"laptime.dev/k6/internal/database"
	"laptime.dev/k6/internal/saturation"
)

// SchemaVersion of the result; it changes when a field changes its meaning.
const SchemaVersion = 1

// LinePrefix begins the one line of standard output that carries the result.
const LinePrefix = "LAPTIME-RESULT "

// Result is all figures of one trial of one generator.
type Result struct {
	SchemaVersion int               `json:"schemaVersion"`
	Trial         string            `json:"trial"`
	Phases        map[string]*Phase `json:"phases"`
	Generator     Generator         `json:"generator"`
	// Statements of the measured phase; absent when the run has no database, empty when none ran.
	Statements []database.Statement `json:"statements,omitzero"`
	// Stands for what was defined in the database before the load; absent where nobody knows.
	DatabaseSchema string `json:"databaseSchema,omitempty"`
	// This generator's place among those that share the load; absent: it is alone.
	Segment *Segment `json:"segment,omitempty"`
	// What a search found; the measured phase is then that of its highest rate that was met.
	Saturation *saturation.Result `json:"saturation,omitempty"`
	// What a script of a user's own says; absent for the built-in loads.
	Script *Script `json:"script,omitempty"`
}

// Segment is a generator's place among those that share a load, from 0.
type Segment struct {
	Index int `json:"index"`
	Count int `json:"count"`
	// When all began, by this generator's clock; absent where the phases of all begin together.
	StartedAt float64 `json:"startedAt,omitempty"`
}

// Generator says what the measuring itself cost during the measured phase.
type Generator struct {
	CPUSeconds      float64 `json:"cpuSeconds"`
	WallSeconds     float64 `json:"wallSeconds"`
	MaxProcs        int     `json:"maxProcs"`
	Threads         int     `json:"threads"`
	BusiestThread   float64 `json:"busiestThread"` // CPU share 0…1 of the busiest load thread
	PeakMemoryBytes int64   `json:"peakMemoryBytes"`
	Version         string  `json:"version"`
	// From an answer's arrival to its reading, of all answers together; absent where the kernel does not stamp
	// what arrives, and of scripts.
	UnreadSeconds float64 `json:"unreadSeconds,omitempty"`
	// Of the way to the servers, as the kernel knows it; absent where it does not tell.
	RoundTripSeconds   float64 `json:"roundTripSeconds,omitempty"` // the shortest
	SegmentsSent       int64   `json:"segmentsSent,omitempty"`
	SegmentsSentAgain  int64   `json:"segmentsSentAgain,omitempty"`
	SegmentsOutOfOrder int64   `json:"segmentsOutOfOrder,omitempty"`
}

// Took says how the network behaved.
func (g *Generator) Took(shortest time.Duration, sent, again, outOfOrder int64) {
	g.RoundTripSeconds = shortest.Seconds()
	g.SegmentsSent, g.SegmentsSentAgain, g.SegmentsOutOfOrder = sent, again, outOfOrder
}

var printed sync.Mutex
var printedOnce bool

// Claim says whether the caller may print the result; only the first caller of a process may, so
// that the output stays silent after a native trial has printed its own.
func Claim() bool {
	printed.Lock()
	defer printed.Unlock()
	mine := !printedOnce
	printedOnce = true
	return mine
}

// What a result may be at most to be stored, with something to spare: in base64, and unpacked (bytes and values).
const (
	mostPacked = 880_000
	mostPlain  = 15 << 20
	mostValues = 1_900_000
)

// WriteLine writes the result as one line. What a script says is shortened until there is room for it: better a result
// without details than none.
func WriteLine(w io.Writer, r *Result) error {
	for {
		plain, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode result: %w", err)
		}
		values := bytes.Count(plain, []byte(",")) + bytes.Count(plain, []byte("[")) + bytes.Count(plain, []byte("{"))
		if times := max(float64(len(plain))/mostPlain, float64(values)/mostValues); times > 1 && r.shorten(times) {
			continue
		}
		text, err := pack(plain)
		if err != nil {
			return err
		}
		if times := float64(len(text)) / mostPacked; times > 1 && r.shorten(times) {
			continue
		}
		_, err = io.WriteString(w, LinePrefix+text+"\n")
		return err
	}
}

func pack(plain []byte) (string, error) {
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", fmt.Errorf("compress result: %w", err)
	}
	if _, err := zip.Write(plain); err != nil {
		return "", fmt.Errorf("compress result: %w", err)
	}
	if err := zip.Close(); err != nil {
		return "", fmt.Errorf("compress result: %w", err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// shorten leaves out details of what a script says, and says whether there were any. Response times of the seconds go
// when there is nothing else.
func (r *Result) shorten(times float64) bool {
	if r.Script == nil {
		return false
	}
	if r.Script.shorten(times) {
		return true
	}
	left := false
	for _, p := range r.Phases {
		left = left || p.LatencySeconds > 0
		p.LatencySeconds = 0
		for i := range p.Seconds {
			p.Seconds[i].Latency = nil
		}
	}
	r.Script.SecondsLeftOut = true
	return left
}

// ParseLine reads a line that WriteLine wrote.
func ParseLine(line string) (*Result, error) {
	text, found := strings.CutPrefix(strings.TrimSpace(line), LinePrefix)
	if !found {
		return nil, fmt.Errorf("not a result line: it does not begin with %q", LinePrefix)
	}
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("result line: %w", err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("result line: %w", err)
	}
	var r Result
	if err := json.NewDecoder(zip).Decode(&r); err != nil {
		return nil, fmt.Errorf("result line: %w", err)
	}
	return &r, nil
}

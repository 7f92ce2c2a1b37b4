package output

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"

	"laptime.dev/k6/internal/process"
	"laptime.dev/k6/internal/result"
)

const (
	// A script whose first lines use so much CPU has a loop in them that does not end.
	readingCPU = 25 * time.Second
	// However little CPU it gets.
	readingTime = 5 * time.Minute
	// What is under way at the end may take so long, as k6 has it (gracefulStop).
	grace = 30 * time.Second
	// Memory is looked at so often: a loop that only takes more gets hundreds of MB in that time.
	memoryEvery = 100 * time.Millisecond
)

// read says that k6 has come to the end of reading the script.
var read atomic.Bool

// bound gives a time that a variable of the environment says in seconds, or the usual one.
func bound(variable string, usual time.Duration) time.Duration {
	if seconds, err := strconv.ParseFloat(os.Getenv(variable), 64); err == nil {
		return time.Duration(seconds * float64(time.Second))
	}
	return usual
}

// Watch ends a k6 that does not come to the end of reading its script: until then no output of k6 is there.
// LAPTIME_READING_SECONDS of CPU time are another bound than the usual one.
func Watch() {
	began, most := time.Now(), bound("LAPTIME_READING_SECONDS", readingCPU)
	go func() {
		for range time.Tick(time.Second) {
			if read.Load() {
				return
			}
			if used, took := process.CPU(), time.Since(began); used > most || took > readingTime {
				result.GiveUp("ScriptFailed", fmt.Errorf("reading the script has not come to its end after %.0f s, for which it used "+
					"the CPU for %.0f s: look for a loop that does not end outside of its functions",
					took.Seconds(), used.Seconds()), int(exitcodes.ScriptException))
			}
		}
	}()
}

// guard watches over a script that runs: over its memory, and over its time once a VU is active. The built-in
// trial is no script of anybody's.
func (o *Output) guard() error {
	read.Store(true)
	if os.Getenv("LAPTIME_TRIAL") != "" {
		return nil
	}
	if text := os.Getenv("LAPTIME_DURATION_SECONDS"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || seconds <= 0 {
			return fmt.Errorf("LAPTIME_DURATION_SECONDS: %q is no number of seconds", text)
		}
		o.longest = time.Duration(seconds * float64(time.Second))
	}
	most, whose := memoryBound()
	if most == 0 {
		return nil
	}
	go func() {
		for range time.Tick(memoryEvery) {
			if used := residentBytes(); used > most {
				result.GiveUp("ScriptFailed", fmt.Errorf("the script used %d MiB of memory, and %d MiB are %s: look for what it keeps "+
					"in every iteration, use fewer virtual users, or give generator.resources.memory", used>>20, most>>20, whose),
					int(exitcodes.ScriptException))
			}
		}
	}()
	return nil
}

// limit ends the run when it has lasted for longer than it should since the first VU was active.
// LAPTIME_GRACE_SECONDS are another time than the usual one for what is under way then.
func (o *Output) limit() {
	if o.longest == 0 || o.limited || o.abort == nil {
		return
	}
	o.limited = true
	grace := bound("LAPTIME_GRACE_SECONDS", grace)
	time.AfterFunc(o.longest+grace, func() {
		err := fmt.Errorf("the script was still running %.0f s after the end of its duration of %.0f s: give a longer duration, or look "+
			"for a loop that does not end", grace.Seconds(), o.longest.Seconds())
		result.SayFailure("GeneratorTimedOut", err)
		o.abort(errext.WithAbortReasonIfNone(errext.WithExitCodeIfNone(err, exitcodes.GenericTimeout), errext.AbortedByTimeout))
	})
}

// Where a container finds its own limit, by cgroup v2 and by v1.
var memoryLimits = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// memoryBound gives how much memory the process may have, and in words why. Who has a limit is told before the
// kernel ends the process without a word; without one half of the machine is left to all others on it.
func memoryBound() (bytes uint64, whose string) {
	if text, set := os.LookupEnv("LAPTIME_MEMORY_BYTES"); set {
		if bytes, err := strconv.ParseUint(text, 10, 64); err == nil {
			return bytes, "what it may have"
		}
	}
	total, err := memoryTotal()
	if err != nil {
		total = math.MaxUint64
	}
	for _, file := range memoryLimits {
		if text, err := os.ReadFile(file); err == nil {
			// Without a limit cgroup v2 says "max", and v1 more than any machine has.
			if bytes, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && bytes <= total {
				return bytes / 100 * 95, "nearly all of its pod's limit"
			}
		}
	}
	if err != nil {
		return 0, ""
	}
	return total / 2, "half of what its node has"
}

func memoryTotal() (uint64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == "MemTotal:" {
			kibibytes, err := strconv.ParseUint(string(fields[1]), 10, 64)
			return kibibytes << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo says nothing of MemTotal")
}

// residentBytes gives what the process has in memory, 0 where nobody says.
func residentBytes() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(string(fields[1]), 10, 64) // the kernel writes numbers
	return pages * uint64(os.Getpagesize())
}

package output

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"

	"laptime.dev/k6/internal/meeting"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/sharing"
)

// tellTimeout bounds how long generator 0 is told of the end of another one.
const tellTimeout = 10 * time.Second

// errEndedElsewhere ends the run here as a threshold does: what was measured until then is whole.
var errEndedElsewhere = errext.WithAbortReasonIfNone(
	errext.WithExitCodeIfNone(errors.New("another generator was stopped before its end"), exitcodes.ThresholdsHaveFailed),
	errext.AbortedByThreshold,
)

// SetTestRunStopCallback takes what ends the run.
func (o *Output) SetTestRunStopCallback(abort func(error)) { o.abort = abort }

// join has this generator begin and end together with the others that run the same script.
func (o *Output) join() error {
	place, err := sharing.Read(os.Getenv)
	if err != nil || place.Count == 1 {
		return err
	}
	options := o.params.ScriptOptions
	divided := slices.ContainsFunc(os.Args, func(one string) bool { return strings.HasPrefix(one, "--rps=") })
	if options.RPS.Int64 > 0 && !divided {
		return fmt.Errorf("the script's option rps (%d) holds for each of %d generators by itself: "+
			"write options.rate in the run, which they share", options.RPS.Int64, place.Count)
	}
	if o.share, err = sharing.Join(place); err != nil {
		return err
	}
	go func() {
		ctx := context.Background() // it ends with the process
		err := o.share.Begin(ctx, options.SetupTimeout.TimeDuration(), o.begin)
		if err == nil {
			err = o.share.Follow(ctx, func() { o.abort(errEndedElsewhere) })
		}
		if err != nil {
			o.giveUp(err)
		}
	}()
	return nil
}

// giveUp ends the process: what the others wait for does not come, which they are told.
func (o *Output) giveUp(err error) {
	_ = o.ended(true, time.Second)         // who cannot be told finds out by waiting
	if errors.Is(err, sharing.ErrScript) { // as k6 says it of setup() and teardown() that it runs itself
		o.params.Logger.WithField("hint", "script exception").Error(strings.TrimPrefix(err.Error(), sharing.ErrScript.Error()+": "))
		os.Exit(int(exitcodes.ScriptException))
	}
	reason := "GeneratorFailed"
	if errors.Is(err, meeting.ErrIncomplete) {
		reason = "GeneratorsIncomplete"
	}
	result.GiveUp(reason, err, int(exitcodes.CannotStartRESTAPI))
}

// begin takes the moment in which all generators begin. The warm-up begins with the first scenario:
// which of the generators has its first iteration does not matter.
func (o *Output) begin(at time.Time) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.start, o.began = at, at
	first := time.Duration(-1)
	for _, scenario := range o.params.ScriptOptions.Scenarios {
		if wait := scenario.GetStartTime(); first < 0 || wait < first {
			first = wait
		}
	}
	o.began = at.Add(max(first, 0))
	// k6 says how many VUs it has while it waits.
	for name, phase := range o.phases {
		o.align(phase.recorder, name)
	}
}

// align lays the seconds of a phase over those of the other generators.
func (o *Output) align(recorder *result.Recorder, phase string) {
	from := o.start
	switch {
	case from.IsZero():
		return
	case phase == measured && o.warmup > 0:
		from = o.began.Add(o.warmup)
	}
	recorder.Align(int64(from.Sub(o.epoch)))
}

// ended tells the others, if there are any, and tries to for so long.
func (o *Output) ended(early bool, patience time.Duration) error {
	if o.share == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return o.share.Ended(ctx, early)
}

// segment gives this generator's place in the result, nil where it is alone.
func (o *Output) segment() *result.Segment {
	if o.share == nil {
		return nil
	}
	place := o.share.Place()
	return &result.Segment{
		Index: place.Index, Count: place.Count, StartedAt: result.UnixSeconds(o.start, 0),
	}
}

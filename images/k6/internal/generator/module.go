// Package generator is the k6 module "k6/x/laptime": the native request loop for scripts.
package generator

import (
	"errors"
	"os"

	"go.k6.io/k6/v2/js/modules"

	"laptime.dev/k6/internal/database"
	"laptime.dev/k6/internal/meeting"
	"laptime.dev/k6/internal/readiness"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/spec"
)

// Exit codes of a trial that left no result.
const (
	ExitTargetNotReachable = 3
	ExitInvalidTrial       = 4
	ExitFailed             = 5
	ExitIncomplete         = 6
)

func init() {
	modules.Register("k6/x/laptime", &root{})
}

type root struct{}

type instance struct {
	vu modules.VU
}

// NewModuleInstance gives a VU its module.
func (*root) NewModuleInstance(vu modules.VU) modules.Instance { return &instance{vu: vu} }

// Exports gives trial(json): run the trial that the JSON describes, print its result.
func (i *instance) Exports() modules.Exports {
	return modules.Exports{Named: map[string]any{"trial": i.trial}}
}

// trial runs a whole trial in the calling VU. Where no result can be had it ends the process, since
// k6 would end well after an exception in an iteration.
func (i *instance) trial(text string) error {
	if i.vu.State() == nil {
		return errors.New("trial() belongs into a scenario, not into the init context")
	}
	trial, err := spec.Parse(text, os.Getenv(spec.AuthorizationVariable))
	if err != nil {
		result.GiveUp("InvalidTrial", err, ExitInvalidTrial)
	}
	// Set by the controller of Indexed Jobs.
	segment, err := trial.Segment(os.Getenv("JOB_COMPLETION_INDEX"))
	if err != nil {
		result.GiveUp("InvalidTrial", err, ExitInvalidTrial)
	}
	err = Run(i.vu.Context(), trial, segment, os.Stdout, os.Stderr)
	switch {
	case err == nil:
		return nil
	case i.vu.Context().Err() != nil:
		return err // stopped from outside: k6 itself exits with the code for that
	case errors.Is(err, readiness.ErrNotReachable):
		result.GiveUp("TargetNotReachable", err, ExitTargetNotReachable)
	case errors.Is(err, readiness.ErrProtocol):
		result.GiveUp("ProtocolNotSpoken", err, ExitFailed)
	case errors.Is(err, database.ErrFull):
		result.GiveUp("TooManyConnections", err, ExitFailed)
	case errors.Is(err, database.ErrNotReachable):
		result.GiveUp("DatabaseNotReachable", err, ExitFailed)
	case database.IsOfStatement(err):
		result.GiveUp("ResetFailed", err, ExitFailed)
	case errors.Is(err, meeting.ErrIncomplete):
		result.GiveUp("GeneratorsIncomplete", err, ExitIncomplete)
	default:
		result.GiveUp("GeneratorFailed", err, ExitFailed)
	}
	return err
}

package output

import (
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// maxExceptions bounds the exceptions that are told apart, by their words and where they were thrown.
const maxExceptions = 10

// rejected begins what k6 says of an iteration in which a promise was rejected and nobody caught that: it has no
// trace for it, since that is in its words.
const rejected = "Uncaught (in promise) "

// maxTrace bounds an exception with its stack, in bytes.
const maxTrace = 1000

// exceptions counts the iterations that ended with one. k6 takes such an iteration for any other, and says of
// the exception nothing but a line in its log, where this listens.
type exceptions struct {
	mutex  sync.Mutex // VUs log beside each other
	thrown []thrown
}

type thrown struct {
	at       time.Time
	scenario string
	trace    string
}

// Levels says which lines of the log matter.
func (*exceptions) Levels() []logrus.Level { return []logrus.Level{logrus.ErrorLevel} }

// Fire notes an exception of an iteration; setup() and teardown() end the run.
func (e *exceptions) Fire(entry *logrus.Entry) error {
	scenario, ofScenario := entry.Data["scenario"].(string)
	if !ofScenario || entry.Data["source"] != "stacktrace" && !strings.HasPrefix(entry.Message, rejected) {
		return nil
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.thrown = append(e.thrown, thrown{entry.Time, scenario, shortened(entry.Message, maxTrace)})
	return nil
}

// listen has exceptions counted from now on.
func (o *Output) listen() {
	if logger, ok := o.params.Logger.(*logrus.Logger); ok {
		logger.AddHook(&o.exceptions)
	}
}

// countExceptions counts those that were thrown since the last time, but for those of the warm-up.
func (o *Output) countExceptions() {
	o.exceptions.mutex.Lock()
	defer o.exceptions.mutex.Unlock()
	for _, one := range o.exceptions.thrown {
		if one.scenario == warmup || o.warmup > 0 && (o.began.IsZero() || one.at.Before(o.began.Add(o.warmup))) {
			continue
		}
		count := o.script.Exceptions[one.trace]
		switch {
		case count > 0 || len(o.script.Exceptions) < maxExceptions:
			o.script.Exceptions[one.trace] = count + 1
		default:
			o.script.MoreExceptions++
		}
	}
	o.exceptions.thrown = o.exceptions.thrown[:0]
}

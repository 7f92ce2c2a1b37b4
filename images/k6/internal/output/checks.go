package output

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"laptime.dev/k6/internal/result"
)

// maxChecks bounds the checks that are told apart.
const maxChecks = 100

// maxName bounds the names that a script gives, in bytes.
const maxName = 200

// check counts one answer of a check under its name, after that of its group if it is in one.
func (o *Output) check(s *metrics.Sample) {
	count := o.checks[s.Tags]
	if count == nil {
		count = o.checkOf(s.Tags)
		if len(o.checks) >= maxCached {
			clear(o.checks)
		}
		o.checks[s.Tags] = count
	}
	if s.Value != 0 {
		count.Passed++
	} else {
		count.Failed++
		o.wrong(s.Time, s.Tags)
	}
}

// wrong counts a call of check() once, however many of its checks failed: all of them have the time of the call, and
// k6 says them one after the other. Two VUs may call it in the same nanosecond: then the same check failed twice.
func (o *Output) wrong(at time.Time, check *metrics.TagSet) {
	call := at.UnixNano()
	first, counted := o.failed[call]
	if counted && first != check {
		return
	}
	if !counted && len(o.failed) >= maxCached {
		clear(o.failed)
	}
	o.failed[call] = check
	o.script.WrongAnswers++
}

func (o *Output) checkOf(tags *metrics.TagSet) *result.CheckCount {
	name, _ := tags.Get("check")
	if group, ok := tags.Get("group"); ok && group != "" {
		name = strings.TrimPrefix(group, lib.GroupSeparator) + lib.GroupSeparator + name
	}
	name = cut(name)
	count := o.script.Checks[name]
	switch {
	case count != nil:
	case len(o.script.Checks) < maxChecks:
		count = &result.CheckCount{}
		o.script.Checks[name] = count
	default:
		if o.script.MoreChecks == nil {
			o.script.MoreChecks = &result.CheckCount{}
		}
		count = o.script.MoreChecks
	}
	return count
}

// cut shortens a name to maxName bytes. Those that begin alike are still told apart: a longer one ends with what is its own.
func cut(name string) string {
	if len(name) <= maxName {
		return name
	}
	whole := sha256.Sum256([]byte(name))
	end := "…" + hex.EncodeToString(whole[:4])
	return shortened(name, maxName-len(end)) + end
}

// shortened gives at most so many bytes of a text, up to the end of a character.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

package session

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Capture says what of an answer the next requests of the same user need: of one of JSON, Header and
// Cookie, or else of the body, what Regex finds, or all of it.
type Capture struct {
	Name   string
	JSON   string // a JSON pointer (RFC 6901)
	Header string
	Cookie string
	Regex  string // its first group, or what it matches where it has none
}

// capture is one that is ready.
type capture struct {
	variable int
	path     string // for gjson
	header   string // lower case
	cookie   []byte
	regex    *regexp.Regexp
}

// MaxBody is how much of a body is looked at, in bytes.
const MaxBody = 1 << 20

// A value that is longer is none that a request carries.
const maxValue = 16 << 10

func compileCapture(c *Capture, variable int) (capture, error) {
	given := 0
	for _, source := range []string{c.JSON, c.Header, c.Cookie} {
		if source != "" {
			given++
		}
	}
	out := capture{variable: variable, header: strings.ToLower(c.Header), cookie: []byte(c.Cookie)}
	if given > 1 || given == 0 && c.Regex == "" {
		return out, errors.New("give one of json, header and cookie, with or without a regex, or a regex for the body")
	}
	var err error
	if c.JSON != "" {
		if out.path, err = pathOf(c.JSON); err != nil {
			return out, err
		}
	}
	if c.Regex != "" {
		if out.regex, err = regexp.Compile(c.Regex); err != nil {
			return out, fmt.Errorf("regex: %w", err)
		}
	}
	return out, nil
}

// pathOf writes a JSON pointer as gjson has it.
func pathOf(pointer string) (string, error) {
	keys := strings.Split(pointer, "/")
	if keys[0] != "" {
		return "", fmt.Errorf("json: %q is no JSON pointer; write one such as /token or /items/0/id", pointer)
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, key := range keys[1:] {
		if key == "" {
			return "", fmt.Errorf("json: %q has a key without a name; use regex for such an answer", pointer)
		}
		keys[i+1] = gjson.Escape(unescape.Replace(key))
	}
	return strings.Join(keys[1:], "."), nil
}

// find gives the value in an answer; it may lie in head or body.
func (c *capture) find(head, body []byte) (value []byte, ok bool) {
	switch {
	case c.path != "":
		value, ok = jsonValue(body, c.path)
	case c.header != "":
		value, ok = headerValue(head, c.header, func(value []byte) ([]byte, bool) { return value, true })
	case len(c.cookie) > 0:
		headerValue(head, "set-cookie", func(line []byte) ([]byte, bool) {
			// The last one counts, as it does for browsers; an empty one takes a cookie away.
			if cookie, is := c.cookieValue(line); is && len(cookie) > 0 {
				value, ok = cookie, true
			}
			return nil, false
		})
	default:
		value, ok = body, true
	}
	if !ok || c.regex == nil {
		return value, ok
	}
	found := c.regex.FindSubmatchIndex(value)
	if len(found) >= 4 {
		found = found[2:]
	}
	if found == nil || found[0] < 0 {
		return nil, false
	}
	return value[found[0]:found[1]], true
}

// cookieValue gives the value of a Set-Cookie line if it is about that cookie.
func (c *capture) cookieValue(line []byte) ([]byte, bool) {
	pair, _, _ := bytes.Cut(line, []byte(";"))
	name, value, found := bytes.Cut(pair, []byte("="))
	return bytes.Trim(bytes.TrimSpace(value), `"`), found && bytes.Equal(bytes.TrimSpace(name), c.cookie)
}

// jsonValue gives a string without its quotation marks, all else as it stands there; null is no value.
func jsonValue(body []byte, path string) ([]byte, bool) {
	found := gjson.Get(unsafe.String(unsafe.SliceData(body), len(body)), path)
	text := found.Raw
	switch found.Type {
	case gjson.Null: // and what is not there
		return nil, false
	case gjson.String:
		text = found.Str
	}
	return unsafe.Slice(unsafe.StringData(text), len(text)), true
}

// headerValue gives the first header line of a name (lower case) that pick takes.
func headerValue(head []byte, name string, pick func([]byte) ([]byte, bool)) ([]byte, bool) {
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		head = rest
		if len(line) <= len(name) || line[len(name)] != ':' || !strings.EqualFold(string(line[:len(name)]), name) {
			continue
		}
		if value, ok := pick(bytes.TrimSpace(line[len(name)+1:])); ok {
			return value, true
		}
	}
	return nil, false
}

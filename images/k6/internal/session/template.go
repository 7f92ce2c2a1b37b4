// Package session is what users do: sessions of one or more requests, made from templates with
// values from feeders and from earlier answers.
//
// All that can be wrong is found when the work is made, before the first request. While it runs, a
// request is put together by copying bytes that are ready into a buffer that is there already.
package session

import (
	"fmt"
	"strings"
)

// What stands between these is the name of a value, with or without an encoding after a bar.
const (
	opens  = "{{"
	closes = "}}"
	// ShortID stands for the id of a row where a request has ids of its own.
	ShortID = "{id}"
)

// part is a piece of a template: text, or a value where name is not empty.
type part struct {
	text     string
	name     string
	encoding encoding
}

// parse cuts a template into its parts. ids: {id} is a value too.
func parse(text string, ids bool) ([]part, error) {
	var parts []part
	literal := func(text string) {
		for ids {
			before, after, found := strings.Cut(text, ShortID)
			if !found {
				break
			}
			parts = append(parts, part{text: before}, part{name: ShortID})
			text = after
		}
		if text != "" {
			parts = append(parts, part{text: text})
		}
	}
	for rest := text; ; {
		before, after, found := strings.Cut(rest, opens)
		literal(before)
		if !found {
			return parts, nil
		}
		inside, behind, found := strings.Cut(after, closes)
		if !found {
			return nil, fmt.Errorf("%s%.20s: no %s follows; for the text itself write {{'{{'}}", opens, after, closes)
		}
		rest = behind
		inside = strings.TrimSpace(inside)
		if quoted, is := unquoted(inside); is {
			parts = append(parts, part{text: quoted})
			continue
		}
		one, err := reference(inside)
		if err != nil {
			return nil, err
		}
		parts = append(parts, one)
	}
}

// unquoted gives what stands between quotation marks: text that is no template.
func unquoted(text string) (string, bool) {
	if len(text) < 2 || text[0] != '\'' && text[0] != '"' || text[len(text)-1] != text[0] {
		return "", false
	}
	return text[1 : len(text)-1], true
}

func reference(inside string) (part, error) {
	name, encoding, with := strings.Cut(inside, "|")
	one := part{name: strings.TrimSpace(name)}
	if with {
		var known bool
		if one.encoding, known = encodings[strings.TrimSpace(encoding)]; !known {
			return part{}, fmt.Errorf("{{%s}}: %q is no encoding; write raw, url or json", inside, strings.TrimSpace(encoding))
		}
	}
	feeder, column, dotted := strings.Cut(one.name, ".")
	if !IsName(feeder) || dotted && !IsName(column) {
		return part{}, fmt.Errorf("{{%s}}: write a name, such as {{token}} or {{users.email}}; for the text itself write {{'{{'}}", inside)
	}
	return one, nil
}

// IsName says whether a feeder, a column or a captured value can be called so: letters, digits, _
// and -, not a digit first.
func IsName(name string) bool {
	for i, letter := range []byte(name) {
		switch {
		case 'a' <= letter|0x20 && letter|0x20 <= 'z', letter == '_':
		case i > 0 && ('0' <= letter && letter <= '9' || letter == '-'):
		default:
			return false
		}
	}
	return name != ""
}

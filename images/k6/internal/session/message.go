package session

import (
	"bytes"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Message is a request as it goes over the wire, ready but for its values.
type Message struct {
	fixed   []byte  // all of it, where it has no values
	head    []piece // the lines before the body
	body    []piece
	longest int     // bytes; 0: not known, it holds what was captured
	fields  []field // of HTTP/2
	whole   []byte  // the body, where it has no values
}

// piece is a part of a message: text, the length of the body, or a value.
type piece struct {
	text     []byte
	what     content
	feeder   *Feeder
	number   int // of the feeder, or of what was captured
	variant  int
	encoding encoding
}

type content uint8

const (
	isText content = iota
	isLength
	isFed
	isCaptured
)

// Fixed is the whole message where all requests are the same, else nil.
func (m *Message) Fixed() []byte { return m.fixed }

// Longest is how many bytes it may have; 0: nobody knows.
func (m *Message) Longest() int { return m.longest }

// Append puts the message together with a user's values. scratch is kept for the next time.
func (m *Message) Append(to []byte, u *User, scratch *[]byte) []byte {
	body := (*scratch)[:0]
	for i := range m.body {
		body = m.body[i].append(body, u)
	}
	*scratch = body
	return append(appendPieces(to, m.head, u, len(body)), body...)
}

// appendPieces puts pieces together; length is that of the body.
func appendPieces(to []byte, pieces []piece, u *User, length int) []byte {
	for i := range pieces {
		if pieces[i].what == isLength {
			to = strconv.AppendInt(to, int64(length), 10)
			continue
		}
		to = pieces[i].append(to, u)
	}
	return to
}

func (p *piece) append(to []byte, u *User) []byte {
	switch p.what {
	case isFed:
		return p.feeder.append(to, u.rows[p.number], p.variant)
	case isCaptured:
		return p.encoding.append(to, u.captured[p.number])
	}
	return append(to, p.text...)
}

// draft collects the values of one request while net/http writes it with marks in their places.
type draft struct {
	work   *Work
	ids    int // number of the feeder that {id} stands for, below 0: none
	mark   string
	values []piece
}

// compile makes the message of a request. It is written by net/http, which knows how; where a value
// is to stand it writes a mark, at which the bytes are cut.
func (w *Work) compile(r *Request, ids int) (*Message, []piece, error) {
	d := &draft{work: w, ids: ids, mark: markFor(r)}
	path, err := d.text("path", r.Path, inPath)
	if err != nil {
		return nil, nil, err
	}
	body, err := d.bodyOf(r)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequest(r.Method, strings.TrimRight(r.Target, "/")+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("User-Agent", "laptime-k6")
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		value, err := d.text("header "+name, r.Headers[name], inHeader)
		if err != nil {
			return nil, nil, err
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, nil, fmt.Errorf("header %q: neither its name nor its value may have line ends, its name no blanks", name)
		}
		if strings.EqualFold(name, "host") {
			request.Host = value
			continue
		}
		request.Header.Set(name, value)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Cookies)) {
		value, err := d.text("cookie "+name, r.Cookies[name], inCookie)
		if err != nil {
			return nil, nil, err
		}
		request.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	request.Close = !r.KeepAlive
	var wire bytes.Buffer
	if err := request.Write(&wire); err != nil {
		return nil, nil, err
	}
	message := d.cut(wire.Bytes(), body != "")
	end := bytes.Index(wire.Bytes(), []byte("\r\n\r\n")) + 4
	message.fields = d.fieldsOf(wire.Bytes()[:end-2], request.URL.Scheme, body != "")
	if message.body == nil {
		message.whole = wire.Bytes()[end:]
	}
	return message, d.values, nil
}

func (d *draft) bodyOf(r *Request) (string, error) {
	if r.Body == nil {
		return "", nil
	}
	where := inBody
	for name, value := range r.Headers {
		if strings.EqualFold(name, "content-type") && isJSON(value) {
			where = inJSONBody
		}
	}
	return d.text("body", *r.Body, where)
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// text gives a template with marks for its values, which it notes.
func (d *draft) text(where, template string, p place) (string, error) {
	parts, err := parse(template, d.ids >= 0 && (p == inPath || p == inBody || p == inJSONBody))
	if err != nil {
		return "", fmt.Errorf("%s: %w", where, err)
	}
	var text strings.Builder
	for _, one := range parts {
		if one.name == "" {
			if p == inPath && !p.takes([]byte(one.text)) {
				return "", fmt.Errorf("%s: %q cannot stand in a path as it is; write %%XX for what no URL has", where, one.text)
			}
			text.WriteString(one.text)
			continue
		}
		value, err := d.value(&one, p)
		if err != nil {
			return "", fmt.Errorf("%s: %w", where, err)
		}
		fmt.Fprintf(&text, "%s%d.", d.mark, len(d.values))
		d.values = append(d.values, value)
	}
	if path, _, _ := strings.Cut(text.String(), "?"); p == inPath {
		for _, segment := range strings.Split(path, "/") {
			if segment == "." || segment == ".." {
				return "", fmt.Errorf("%s: %q has a segment %s, which some clients take out; write the path that is meant", where, template, segment)
			}
		}
	}
	return text.String(), nil
}

func (d *draft) value(one *part, p place) (piece, error) {
	e := one.encoding
	if e == byPlace {
		e = p.encoding()
	}
	feederName, column, dotted := strings.Cut(one.name, ".")
	number := d.work.feederNumber(feederName)
	if one.name == ShortID {
		number, column = d.ids, ""
	}
	if number >= 0 {
		feeder := d.work.feeders[number]
		found, err := feeder.find(column)
		if err != nil {
			return piece{}, err
		}
		variant, err := feeder.variant(found, e, p)
		if err != nil {
			return piece{}, err
		}
		return piece{what: isFed, feeder: feeder, number: number, variant: variant}, nil
	}
	variable := slices.IndexFunc(d.work.variables, func(v variable) bool { return v.name == one.name })
	if dotted || variable < 0 {
		return piece{}, fmt.Errorf("{{%s}}: neither a feeder nor captured by a request; there is %s", one.name, d.work.known())
	}
	if e == raw {
		v := &d.work.variables[variable]
		v.stands = append(v.stands, p)
	}
	return piece{what: isCaptured, number: variable, encoding: e}, nil
}

// markFor gives a text that the request does not hold, and that stands for itself everywhere.
func markFor(r *Request) string {
	mark := "value"
	holds := func(text string) bool { return strings.Contains(strings.ToLower(text), mark) }
	for {
		found := holds(r.Target) || holds(r.Path) || r.Body != nil && holds(*r.Body)
		for name, value := range r.Headers {
			found = found || holds(name) || holds(value)
		}
		for name, value := range r.Cookies {
			found = found || holds(name) || holds(value)
		}
		if !found {
			return mark
		}
		mark += "x"
	}
}

// cut makes a message of the bytes that net/http wrote.
func (d *draft) cut(wire []byte, hasBody bool) *Message {
	if len(d.values) == 0 {
		return &Message{fixed: wire, longest: len(wire)}
	}
	end := bytes.Index(wire, []byte("\r\n\r\n")) + 4
	m := &Message{body: d.pieces(wire[end:])}
	head := wire[:end]
	if hasBody {
		// Of the whole head only net/http writes a line of this name.
		from := bytes.Index(head, []byte("\r\nContent-Length: ")) + len("\r\nContent-Length: ")
		to := from + bytes.IndexByte(head[from:], '\r')
		m.head = append(d.pieces(head[:from]), piece{what: isLength})
		head = head[to:]
	}
	m.head = append(m.head, d.pieces(head)...)
	for _, one := range slices.Concat(m.head, m.body) {
		switch one.what {
		case isFed:
			m.longest += one.feeder.longest(one.variant)
		case isCaptured:
			m.longest = 0
			return m
		default:
			m.longest += len(one.text)
		}
	}
	m.longest += len("9223372036854775807")
	return m
}

func (d *draft) pieces(text []byte) []piece {
	var pieces []piece
	for {
		at := bytes.Index(text, []byte(d.mark))
		if at < 0 {
			break
		}
		if at > 0 {
			pieces = append(pieces, piece{text: bytes.Clone(text[:at])})
		}
		text = text[at+len(d.mark):]
		dot := bytes.IndexByte(text, '.')
		number, _ := strconv.Atoi(string(text[:dot])) // written above
		pieces = append(pieces, d.values[number])
		text = text[dot+1:]
	}
	if len(text) > 0 {
		pieces = append(pieces, piece{text: bytes.Clone(text)})
	}
	return pieces
}

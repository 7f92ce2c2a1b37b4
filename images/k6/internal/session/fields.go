package session

import (
	"bytes"
	"strings"
	"unsafe"

	"golang.org/x/net/http2/hpack"
)

// field is a header field of a request as HTTP/2 has it: ready, or to be put together from pieces.
type field struct {
	ready  hpack.HeaderField
	pieces []piece
}

// Of one connection alone, which HTTP/2 has other means for (RFC 9113, section 8.2.2).
var ofConnections = []string{"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"}

// OfConnections says whether a header is about the connection, so that HTTP/2 has none of this name.
func OfConnections(name string) bool {
	for _, one := range ofConnections {
		if strings.EqualFold(name, one) {
			return true
		}
	}
	return false
}

// Fields writes the header fields of the request, with a user's values, and gives the body, which lies
// in scratch where it has values. Fields with values are never put into the table of a
// connection: there they would displace those that all requests have.
func (m *Message) Fields(to *hpack.Encoder, u *User, scratch *[]byte) (body []byte, err error) {
	body = m.whole
	if m.body != nil {
		body = (*scratch)[:0]
		for i := range m.body {
			body = m.body[i].append(body, u)
		}
	}
	// Behind the body, so that both are there at the same time.
	text := body
	if m.body == nil {
		text = (*scratch)[:0]
	}
	length := len(body)
	for i := range m.fields {
		f := m.fields[i].ready
		if pieces := m.fields[i].pieces; pieces != nil {
			from := len(text)
			text = appendPieces(text, pieces, u, length)
			value := text[from:]
			f.Value = unsafe.String(unsafe.SliceData(value), len(value)) // nobody keeps it
			f.Sensitive = true
		}
		if err := to.WriteField(f); err != nil {
			return nil, err
		}
	}
	*scratch = text
	if m.body != nil {
		body = text[:length]
	}
	return body, nil
}

// fieldsOf reads the header fields from the head of a message, as net/http wrote it for HTTP/1.1.
func (d *draft) fieldsOf(head []byte, scheme string, hasBody bool) []field {
	first, lines, _ := bytes.Cut(head, []byte("\r\n"))
	method, rest, _ := bytes.Cut(first, []byte(" "))
	path := rest[:bytes.LastIndexByte(rest, ' ')]
	var others []field
	var authority []byte
	for len(lines) > 0 {
		line, after, _ := bytes.Cut(lines, []byte("\r\n"))
		lines = after
		name, value, found := bytes.Cut(line, []byte(": "))
		lower := strings.ToLower(string(name))
		switch {
		case !found || OfConnections(lower):
		case lower == "host":
			authority = value
		case lower == "content-length" && hasBody && len(d.values) > 0:
			others = append(others, field{ready: hpack.HeaderField{Name: lower}, pieces: []piece{{what: isLength}}})
		default:
			others = append(others, d.field(lower, value))
		}
	}
	return append([]field{
		d.field(":method", method), d.field(":authority", authority), d.field(":scheme", []byte(scheme)), d.field(":path", path),
	}, others...)
}

func (d *draft) field(name string, value []byte) field {
	pieces := d.pieces(value)
	for i := range pieces {
		if pieces[i].what != isText {
			return field{ready: hpack.HeaderField{Name: name}, pieces: pieces}
		}
	}
	return field{ready: hpack.HeaderField{Name: name, Value: string(value)}}
}

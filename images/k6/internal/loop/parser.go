package loop

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"

	"laptime.dev/k6/internal/session"
)

// parser reads one HTTP/1.1 response as it arrives in pieces. Of a body bytes are counted, and summed
// up or kept when asked to.
type parser struct {
	status     int
	bodyBytes  int64
	left       int64 // of a body with a length, or of the current chunk
	state      parseState
	closeAfter bool // the server will close, or the protocol leaves no other way
	interim    bool // an interim head has come: what came before the end of it is not the answer
	summing    bool
	sum        uint64 // of the body's bytes
	head       []byte // an incomplete header or chunk line
	keeping    bool   // the whole head, and the beginning of the body
	keptHead   []byte
	keptBody   []byte
}

type parseState uint8

const (
	inHead parseState = iota
	inBody
	untilClose
	inChunkSize
	inChunkData
	inChunkEnd
	inTrailer
	complete
)

const maxHead = 256 << 10

var (
	errMalformed = errors.New("malformed HTTP response")
	errTooLong   = errors.New("response head longer than 256 KiB")
)

// reset makes the parser ready for the next response.
func (p *parser) reset(summing, keeping bool) {
	p.status, p.bodyBytes, p.left = 0, 0, 0
	p.state, p.closeAfter, p.interim = inHead, false, false
	p.head = p.head[:0]
	p.summing, p.sum = summing, 0
	p.keeping, p.keptHead, p.keptBody = keeping, p.keptHead[:0], p.keptBody[:0]
}

// feed takes the next bytes and gives what lies behind the end of the response. headOnly: the
// answer to HEAD, which has no body whatever its header says.
func (p *parser) feed(b []byte, headOnly bool) (rest []byte, err error) {
	for len(b) > 0 && p.state != complete {
		switch p.state {
		case inHead:
			if b, err = p.feedHead(b, headOnly); err != nil {
				return nil, err
			}
		case inBody, inChunkData:
			n := min(p.left, int64(len(b)))
			p.body(b[:n])
			b = b[n:]
			if p.left -= n; p.left > 0 {
				break
			}
			if p.state == inBody {
				p.state = complete
			} else {
				p.state = inChunkEnd
			}
		case untilClose:
			p.body(b)
			b = nil
		default:
			if b, err = p.feedLine(b); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

func (p *parser) body(b []byte) {
	p.bodyBytes += int64(len(b))
	if p.summing {
		p.sum += sumOf(b)
	}
	if p.keeping {
		p.keptBody = append(p.keptBody, b[:min(len(b), session.MaxBody-len(p.keptBody))]...)
	}
}

// sumOf adds up bytes, eight at a time: one at a time would cost more than a request of 10 KB does.
func sumOf(b []byte) (sum uint64) {
	const (
		even  = 0x00ff00ff00ff00ff
		ones  = 0x0001000100010001
		words = 64 // of two bytes for each of four sums of 16 bits: none overflows
	)
	for len(b) >= 8 {
		lanes := uint64(0)
		for range min(len(b)/8, words) {
			word := binary.LittleEndian.Uint64(b)
			lanes += word&even + word>>8&even
			b = b[8:]
		}
		// The product has the sum of all four lanes in the highest one.
		sum += lanes&even*ones>>48 + (lanes>>8&even*ones>>48)<<8
	}
	for _, one := range b {
		sum += uint64(one)
	}
	return sum
}

func (p *parser) feedHead(b []byte, headOnly bool) (rest []byte, err error) {
	head := b
	if before := len(p.head); before > 0 {
		// The end may lie across the border: search from two bytes before it.
		p.head = append(p.head, b...)
		from := max(before-2, 0)
		end := endOfHead(p.head[from:])
		if end < 0 {
			return nil, p.headTooLong()
		}
		end += from
		head, rest = p.head[:end], b[end-before:]
	} else {
		end := endOfHead(b)
		if end < 0 {
			p.head = append(p.head, b...)
			return nil, p.headTooLong()
		}
		head, rest = b[:end], b[end:]
	}
	err = p.readHead(head, headOnly)
	p.head = p.head[:0]
	return rest, err
}

// endOfHead is what lies behind the first empty line that follows another one; -1: none has come. A bare LF ends a
// line too, as it does for the operator's client and for Go's (RFC 9112, section 2.2).
func endOfHead(b []byte) int {
	for at := 0; ; {
		end := bytes.IndexByte(b[at:], '\n')
		if end < 0 {
			return -1
		}
		at += end + 1
		switch {
		case at < len(b) && b[at] == '\n':
			return at + 1
		case at+1 < len(b) && b[at] == '\r' && b[at+1] == '\n':
			return at + 2
		}
	}
}

func (p *parser) headTooLong() error {
	if len(p.head) > maxHead {
		return errTooLong
	}
	return nil
}

// readHead reads a complete head and sets how the body ends (RFC 9112, section 6.3).
func (p *parser) readHead(head []byte, headOnly bool) error {
	whole := head
	end := bytes.IndexByte(head, '\n')
	line := bytes.TrimSuffix(head[:end], []byte("\r"))
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' || (len(line) > 12 && line[12] != ' ') {
		return errMalformed
	}
	status := 0
	for _, digit := range line[9:12] {
		if digit < '0' || digit > '9' {
			return errMalformed
		}
		status = status*10 + int(digit-'0')
	}
	length, chunked, coded := int64(-1), false, false
	keepAlive := line[7] != '0'
	for head = head[end+1:]; len(head) > 2; {
		end = bytes.IndexByte(head, '\n')
		line, head = head[:end], head[end+1:]
		// Only three headers matter, and their first letters tell nearly all others apart.
		switch line[0] | 0x20 {
		case 'c':
			if value, ok := header(line, "content-length"); ok {
				n, err := strconv.ParseUint(string(value), 10, 62)
				if err != nil || (length >= 0 && length != int64(n)) {
					return errMalformed
				}
				length = int64(n)
			} else if value, ok := header(line, "connection"); ok {
				if hasToken(value, "close") {
					keepAlive = false
				} else if hasToken(value, "keep-alive") {
					keepAlive = true
				}
			}
		case 't':
			if value, ok := header(line, "transfer-encoding"); ok {
				coded = true
				chunked = hasToken(value, "chunked")
			}
		}
	}
	if status < 200 {
		if status == 101 {
			return errMalformed // an upgrade nobody asked for
		}
		p.interim = true // the answer itself follows
		return nil
	}
	if p.keeping {
		p.keptHead = append(p.keptHead, whole...)
	}
	p.status = status
	p.closeAfter = !keepAlive
	switch {
	case headOnly || status == 204 || status == 304:
		p.state = complete
	case chunked:
		p.state = inChunkSize
	case coded || length < 0:
		p.state, p.closeAfter = untilClose, true
	case length == 0:
		p.state = complete
	default:
		p.state, p.left = inBody, length
	}
	return nil
}

// header gives the value of a header line if it has that name (lower case).
func header(line []byte, name string) ([]byte, bool) {
	if len(line) <= len(name) || line[len(name)] != ':' {
		return nil, false
	}
	for i := range len(name) {
		letter := line[i]
		if 'A' <= letter && letter <= 'Z' {
			letter |= 0x20
		}
		if letter != name[i] {
			return nil, false
		}
	}
	return bytes.TrimSpace(line[len(name)+1:]), true
}

// hasToken says whether a comma-separated list holds the token (lower case).
func hasToken(value []byte, token string) bool {
	for len(value) > 0 {
		part := value
		if comma := bytes.IndexByte(value, ','); comma >= 0 {
			part, value = value[:comma], value[comma+1:]
		} else {
			value = nil
		}
		part = bytes.TrimSpace(part)
		if len(part) == len(token) && bytes.EqualFold(part, []byte(token)) {
			return true
		}
	}
	return false
}

// feedLine takes one line of the chunked coding, which may arrive in pieces.
func (p *parser) feedLine(b []byte) (rest []byte, err error) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		p.head = append(p.head, b...)
		return nil, p.headTooLong()
	}
	line := b[:end]
	if len(p.head) > 0 {
		p.head = append(p.head, line...)
		line = p.head
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	p.head = p.head[:0]
	rest = b[end+1:]
	switch p.state {
	case inChunkSize:
		if semicolon := bytes.IndexByte(line, ';'); semicolon >= 0 {
			line = line[:semicolon]
		}
		size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 62)
		if err != nil {
			return nil, errMalformed
		}
		p.left = int64(size)
		if p.state = inChunkData; size == 0 {
			p.state = inTrailer
		}
	case inChunkEnd:
		if len(line) != 0 {
			return nil, errMalformed
		}
		p.state = inChunkSize
	case inTrailer:
		if len(line) == 0 {
			p.state = complete
		}
	}
	return rest, nil
}

// begun says whether something of the answer has come.
func (p *parser) begun() bool { return p.state != inHead || len(p.head) > 0 }

// end says that the server closed: whether that completes the response.
func (p *parser) end() bool {
	if p.state == untilClose {
		p.state = complete
	}
	return p.state == complete
}

package session

import "strings"

// encoding is how the bytes of a value become part of a request.
type encoding uint8

const (
	byPlace encoding = iota // what the place asks for
	raw
	inURL  // all but letters, digits and -._~ as %XX
	inJSON // as the inside of a JSON string
)

var encodings = map[string]encoding{"raw": raw, "url": inURL, "json": inJSON}

// place is where in a request a value stands: not every byte may stand everywhere.
type place uint8

const (
	inPath place = iota
	inHeader
	inCookie
	inBody
	inJSONBody
)

func (p place) encoding() encoding {
	switch p {
	case inPath:
		return inURL
	case inJSONBody:
		return inJSON
	}
	return raw
}

// takes says whether a text may stand there: nothing that would end the line that it stands in, or
// that net/http would not write as it is.
func (p place) takes(text []byte) bool {
	for i, b := range text {
		switch p {
		case inPath:
			if b == '%' && !(i+2 < len(text) && isHexDigit(text[i+1]) && isHexDigit(text[i+2])) || !inURI(b) {
				return false
			}
		case inHeader:
			if b < ' ' && b != '\t' || b == 0x7f {
				return false
			}
		case inCookie:
			if b < ' ' || b >= 0x7f || b == '"' || b == ';' || b == '\\' || b == ',' || b == ' ' {
				return false
			}
		}
	}
	return true
}

// inURI says whether a byte stands in paths and queries as it is: as RFC 3986 has it, and brackets,
// which browsers leave too. All else clients write in ways of their own.
func inURI(b byte) bool {
	return 'a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9' || strings.IndexByte("-._~!$&'()*+,;=:@/?%[]", b) >= 0
}

func isHexDigit(b byte) bool { return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'f' }

const hexDigits = "0123456789ABCDEF"

// append adds an encoded value. It makes no garbage.
func (e encoding) append(to []byte, value []byte) []byte {
	switch e {
	case inURL:
		for _, b := range value {
			switch {
			case 'a' <= b|0x20 && b|0x20 <= 'z', '0' <= b && b <= '9', b == '-', b == '.', b == '_', b == '~':
				to = append(to, b)
			default:
				to = append(to, '%', hexDigits[b>>4], hexDigits[b&15])
			}
		}
		return to
	case inJSON:
		for _, b := range value {
			switch {
			case b == '"' || b == '\\':
				to = append(to, '\\', b)
			case b >= ' ':
				to = append(to, b)
			case b == '\n':
				to = append(to, '\\', 'n')
			default:
				to = append(to, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
			}
		}
		return to
	}
	return append(to, value...)
}

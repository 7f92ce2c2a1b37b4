package session

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

// takes says whether a value may stand there: nothing that would end the line that it stands in, or
// that net/http would not write.
func (p place) takes(value []byte) bool {
	for _, b := range value {
		switch p {
		case inPath:
			if b <= ' ' || b >= 0x7f || b == '#' {
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

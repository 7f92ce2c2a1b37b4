package spec

import (
	"errors"
	"maps"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// AuthorizationVariable names the environment variable with the header Authorization of all requests.
const AuthorizationVariable = "LAPTIME_AUTHORIZATION"

const authorizationHeader = "Authorization"

// authorize has every request carry the value, but those that say who they are themselves. What the
// value is, no error says.
func (t *Trial) authorize(value string) error {
	t.authorization = value
	if value == "" {
		return nil
	}
	if !httpguts.ValidHeaderFieldValue(value) || strings.Contains(value, "{{") {
		return errors.New(AuthorizationVariable + ": write the value of one header, such as Bearer and a token: no line ends, no {{")
	}
	for i := range t.Requests {
		r := &t.Requests[i]
		if r.names(authorizationHeader) {
			continue
		}
		headers := map[string]string{authorizationHeader: value}
		maps.Copy(headers, r.Headers)
		r.Headers = headers
	}
	return nil
}

func (r *Request) names(header string) bool {
	for name := range r.Headers {
		if strings.EqualFold(name, header) {
			return true
		}
	}
	return false
}

// Authorization is that header of all requests of the trial; empty: they have none of it.
func (t *Trial) Authorization() string { return t.authorization }

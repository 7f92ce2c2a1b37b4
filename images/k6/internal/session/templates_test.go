package session

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The operator reads templates too, and is tested with the same cases
// (operator/tests/catalog/test_templates.py). One without a text is refused.
func TestTemplatesAreWrittenAsTheOperatorUnderstandsThem(t *testing.T) {
	file, err := os.ReadFile("testdata/templates.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Place, Template, Name string
		Text                  *string
	}
	if err := json.Unmarshal(file, &cases); err != nil {
		t.Fatal(err)
	}
	for _, one := range cases {
		r := Request{Name: "r", Method: "POST", Target: "http://host", Path: "/", KeepAlive: true, Headers: map[string]string{}}
		var before, after string
		switch one.Place {
		case "path":
			r.Path += one.Template
			before, after = "POST /", " HTTP/1.1\r\n"
		case "header":
			r.Headers["X"] = one.Template
			before, after = "\r\nX: ", "\r\n"
		case "cookie":
			r.Cookies = map[string]string{"c": one.Template}
			before, after = "\r\nCookie: c=", "\r\n"
		case "jsonBody", "body":
			if one.Place == "jsonBody" {
				r.Headers["content-type"] = "application/problem+json; charset=utf-8"
			}
			r.Body = &one.Template
			before, after = "\r\n\r\n", ""
		default:
			t.Fatalf("%q is no place", one.Place)
		}
		feeder, err := Table("users", strings.NewReader("name\n\""+strings.ReplaceAll(one.Name, `"`, `""`)+"\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(one.Name, "\r") {
			// The reader of CSV leaves none of those before a line feed.
			feeder.cells[0][0] = one.Name
		}
		work, err := New([]Request{r}, []*Feeder{feeder}, []Session{{Name: "r", Weight: 1, Steps: []string{"r"}}})
		if err != nil || one.Text == nil {
			if (err == nil) != (one.Text != nil) {
				t.Errorf("%s %q with %q: %v", one.Place, one.Template, one.Name, err)
			}
			continue
		}
		feeder.Share(0, 1, 1)
		user := work.NewUser()
		work.Begin(&user, 0)
		_, _ = work.Draw(&user)
		var scratch []byte
		wire := string(work.Messages[0].Append(nil, &user, &scratch))
		if work.Messages[0].Fixed() != nil {
			wire = string(work.Messages[0].Fixed())
		}
		if !strings.Contains(wire, before+*one.Text+after) {
			t.Errorf("%s %q: %q, expected %q in it", one.Place, one.Template, wire, *one.Text)
		}
	}
}

package loop

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

var answers = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n",
	"HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nContent-Length: 20\r\n\r\n",
	"HTTP/1.1 500\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nTrailer: yes\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx",
	"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
	"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx",
	"HTTP/1.1 200 OK\r\nServer: until close\r\n\r\nall that comes",
	// A bare LF ends a line too.
	"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
	"HTTP/1.1 200 OK\nContent-Length: 8\nX: y\r\n\na\r\n\r\nb\n\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello",
	"HTTP/1.1 100 Continue\n\nHTTP/1.0 201 Created\nContent-Length: 1\n\nx",
	"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\r\nhello\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nA: b\n\nC: d\r\n\r\n",
	"HTTP/1.1 204\n\n",
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTag: t\r\nCookie: c\r\nConnection: foo, Close\r\nContent-Length: 3\r\n\r\nabc",
}

// Every answer is read in two pieces cut at every place, and byte by byte, and must come out as
// net/http reads it.
func TestParserAgreesWithNetHTTPWhereverTheBytesAreCut(t *testing.T) {
	for _, answer := range answers {
		want, body := readStandard(t, answer)
		for cut := 0; cut <= len(answer); cut++ {
			checkParse(t, answer, want, body, answer[:cut], answer[cut:])
		}
		checkParse(t, answer, want, body, strings.Split(answer, "")...)
	}
}

func readStandard(t *testing.T, answer string) (*http.Response, []byte) {
	t.Helper()
	reader := bufio.NewReader(strings.NewReader(answer))
	response, err := http.ReadResponse(reader, nil)
	for err == nil && response.StatusCode < 200 {
		response, err = http.ReadResponse(reader, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, body
}

func checkParse(t *testing.T, answer string, want *http.Response, body []byte, pieces ...string) {
	t.Helper()
	var p parser
	p.reset(true, false)
	for _, piece := range pieces {
		rest, err := p.feed([]byte(piece), false)
		if err != nil || len(rest) > 0 {
			t.Fatalf("%q cut as %q: rest %q, error %v", answer, pieces, rest, err)
		}
	}
	if !p.end() {
		t.Fatalf("%q cut as %q: not complete", answer, pieces)
	}
	if p.status != want.StatusCode || p.bodyBytes != int64(len(body)) || p.closeAfter != want.Close {
		t.Fatalf("%q cut as %q: status %d, %d bytes, close %v; net/http says %d, %d, %v", answer, pieces,
			p.status, p.bodyBytes, p.closeAfter, want.StatusCode, len(body), want.Close)
	}
	sum := uint64(0)
	for _, one := range body {
		sum += uint64(one)
	}
	if p.sum != sum {
		t.Fatalf("%q cut as %q: another body", answer, pieces)
	}
}

func TestTheSumIsThatOfAllBytes(t *testing.T) {
	for _, size := range []int{0, 1, 7, 8, 9, 511, 512, 513, 1024, 100_003} {
		for _, fill := range []byte{0, 1, 255} {
			b, want := make([]byte, size), uint64(0)
			for i := range b {
				b[i] = fill - byte(i%3)
				want += uint64(b[i])
			}
			if got := sumOf(b); got != want {
				t.Errorf("%d bytes from %d: %d, expected %d", size, fill, got, want)
			}
		}
	}
}

func BenchmarkSum(b *testing.B) {
	body := make([]byte, 12_600)
	for b.Loop() {
		sumOf(body)
	}
}

// What it costs to read an answer as servers send them.
func BenchmarkParser(b *testing.B) {
	answer := []byte("HTTP/1.1 200 OK\r\nserver: granian\r\ncontent-length: 65\r\ncontent-type: application/json\r\n" +
		"vary: Accept-Encoding\r\nx-request-id: 4d1f7c1e-4a3b-4a57-9d8e-4f1f2a6b8c90\r\n" +
		"date: Wed, 25 Nov 2026 03:00:00 GMT\r\n\r\n" + strings.Repeat("x", 65))
	var p parser
	for b.Loop() {
		p.reset(false, false)
		if _, err := p.feed(answer, false); err != nil || p.state != complete {
			b.Fatal(p.state, err)
		}
	}
}

func TestParserRefusesWhatIsNotHTTP(t *testing.T) {
	for _, answer := range []string{
		"hello\r\n\r\n",
		"HTTP/2.0 200 OK\r\n\r\n",
		"HTTP/1.1 2x0 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"\n\nHTTP/1.1 200 OK\r\n\r\n",
	} {
		var p parser
		p.reset(false, false)
		if _, err := p.feed([]byte(answer), false); err == nil {
			t.Errorf("%q was taken", answer)
		}
	}
	var p parser
	p.reset(false, false)
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		_, err = p.feed(bytes.Repeat([]byte("x"), 8192), false)
	}
	if err == nil {
		t.Error("a head without end was taken")
	}
}

func TestParserGivesBackWhatLiesBehindTheAnswer(t *testing.T) {
	var p parser
	p.reset(false, false)
	rest, err := p.feed([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore"), false)
	if err != nil || string(rest) != "more" {
		t.Fatalf("rest %q, error %v", rest, err)
	}
	p.reset(false, false)
	if _, err := p.feed([]byte("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"), true); err != nil || p.state != complete {
		t.Fatalf("the answer to HEAD has no body: state %v, error %v", p.state, err)
	}
}

// FuzzParser looks for bytes that make the parser crash, or disagree with itself when cut.
func FuzzParser(f *testing.F) {
	for _, answer := range answers {
		f.Add([]byte(answer), 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var whole, pieces parser
		whole.reset(true, false)
		pieces.reset(true, false)
		rest, err := whole.feed(bytes.Clone(data), false)
		cut = min(max(cut, 0), len(data))
		rest2, err2 := pieces.feed(bytes.Clone(data[:cut]), false)
		if err2 == nil && pieces.state != complete {
			rest2, err2 = pieces.feed(bytes.Clone(data[cut:]), false)
		} else if err2 == nil {
			rest2 = append(bytes.Clone(rest2), data[cut:]...)
		}
		if (err == nil) != (err2 == nil) {
			t.Fatalf("whole: %v, cut: %v", err, err2)
		}
		if err == nil && (whole.status != pieces.status || whole.bodyBytes != pieces.bodyBytes ||
			whole.state != pieces.state || !bytes.Equal(rest, rest2)) {
			t.Fatal("another answer when cut")
		}
	})
}

package readiness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// errClosed says that a connection was taken and closed without an answer, as a delay does while there is
// nobody behind it.
var errClosed = errors.New("GET / got no answer")

// hasIt says nil where the server itself takes a request: HAProxy and a delay take connections for a server
// that is not there. Any answer is one, and so is none yet; nothing is asked of a server beyond TLS, before
// which neither stands.
func hasIt(ctx context.Context, base *url.URL, server Server, address string) error {
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	if server.TLS != nil {
		return nil
	}
	_ = connection.SetDeadline(time.Now().Add(pollTimeout))
	_, err = fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", base.Host)
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(bufio.NewReader(connection), nil)
	}
	var broken net.Error
	switch {
	case err == nil:
		return ofHAProxy(answer)
	case errors.As(err, &broken) && !broken.Timeout(), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	return nil
}

// ofHAProxy says nil of an answer that is the server's own, which may be any, and else what HAProxy's page
// says: nobody is there (503), or who is has closed the connection (502).
func ofHAProxy(answer *http.Response) error {
	if answer.StatusCode != http.StatusServiceUnavailable && answer.StatusCode != http.StatusBadGateway {
		return nil
	}
	page := fmt.Sprintf("<html><body><h1>%s</h1>", answer.Status)
	body := make([]byte, len(page))
	if _, err := io.ReadFull(answer.Body, body); err != nil || string(body) != page {
		return nil
	}
	if answer.StatusCode == http.StatusBadGateway {
		return fmt.Errorf("%w: HAProxy says %s", errClosed, answer.Status)
	}
	return fmt.Errorf("GET /: HAProxy says %s", answer.Status)
}

package readiness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/http2"
)

// ErrProtocol says that the server serves, but not over HTTP/2, or not as many streams at once as the
// load has.
var ErrProtocol = errors.New("protocol")

func (s *Server) protocols() *http.Protocols {
	protocols := &http.Protocols{}
	switch {
	case !s.HTTP2:
		protocols.SetHTTP1(true)
	case s.TLS != nil:
		protocols.SetHTTP2(true)
	default:
		protocols.SetUnencryptedHTTP2(true)
	}
	return protocols
}

func insteadOf(server Server) string {
	if server.TLS != nil {
		return "have it choose h2 by ALPN, or write protocol: http1"
	}
	return "have it speak HTTP/2 without TLS (h2c, with prior knowledge), or write protocol: http1"
}

// speaksOnlyHTTP1 says so of a server that was not there over HTTP/2, is over HTTP/1.1, and is not over
// HTTP/2 after that.
func speaksOnlyHTTP1(ctx context.Context, base *url.URL, server Server) bool {
	older := server
	older.HTTP2 = false
	if server.TLS != nil {
		older.TLS = server.TLS.Clone()
		older.TLS.NextProtos = []string{"http/1.1"}
	}
	if _, err := probe(ctx, base, older); err != nil {
		return false
	}
	_, err := probe(ctx, base, server)
	return err != nil
}

// greets asks a server that serves for its settings: how many streams it takes at once.
func greets(ctx context.Context, address string, server Server) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	deadline, _ := ctx.Deadline()
	_ = connection.SetDeadline(deadline)
	if server.TLS != nil {
		secured := tls.Client(connection, server.TLS)
		if err := secured.HandshakeContext(ctx); err != nil {
			return err
		}
		connection = secured
	}
	framer := http2.NewFramer(connection, connection)
	if _, err := io.WriteString(connection, http2.ClientPreface); err != nil {
		return err
	}
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	frame, err := framer.ReadFrame()
	if err != nil {
		return err
	}
	settings, is := frame.(*http2.SettingsFrame)
	if !is {
		return fmt.Errorf("its first frame is %v, and no settings", frame.Header().Type)
	}
	most, bounded := settings.Value(http2.SettingMaxConcurrentStreams)
	if bounded && uint32(server.Streams) > most {
		return fmt.Errorf("%w: %s takes %d streams at once of a connection, and the load has %d; write streams: %d, and more connections",
			ErrProtocol, server.Target, most, server.Streams, most)
	}
	_ = framer.WriteSettingsAck()
	_ = framer.WriteGoAway(0, http2.ErrCodeNo, nil)
	return nil
}

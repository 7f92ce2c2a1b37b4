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

// overHTTP2 says what a server's answer over HTTP/2, or its failing, means: nil where a load can be sent so.
func overHTTP2(ctx context.Context, base *url.URL, server Server, answer error) error {
	if answer == nil || server.TLS != nil {
		// With TLS the server says at once what it chooses.
		if err := greets(ctx, base, server); err != nil && (answer == nil || errors.Is(err, ErrProtocol)) {
			return err
		}
	}
	if answer == nil || !speaksOnlyHTTP1(ctx, base, server) {
		return answer
	}
	return fmt.Errorf("%w: %s%s answers 200 over HTTP/1.1, and over HTTP/2 it says: %w; %s",
		ErrProtocol, server.Target, server.Path, answer, insteadOf(server))
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
func greets(ctx context.Context, base *url.URL, server Server) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	addresses, err := resolve(ctx, base)
	if err != nil {
		return err
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", addresses[0].String())
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
		if secured.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
			return fmt.Errorf("%w: %s does not choose h2, the only protocol that it was offered; %s",
				ErrProtocol, server.Target, insteadOf(server))
		}
		connection = secured
	}
	framer := http2.NewFramer(connection, connection)
	framer.SetMaxReadFrameSize(16 << 10)
	if _, err := io.WriteString(connection, http2.ClientPreface); err != nil {
		return err
	}
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	frame, err := framer.ReadFrame()
	if errors.Is(err, http2.ErrFrameTooLarge) {
		return fmt.Errorf("%w: %s does not answer over HTTP/2: %w; %s", ErrProtocol, server.Target, err, insteadOf(server))
	}
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

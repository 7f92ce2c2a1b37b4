// Package readiness finds the server under test and waits until it serves.
package readiness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	pollEvery   = 50 * time.Millisecond
	pollTimeout = 2 * time.Second
	// A Service that has no pod yet may swallow a connection attempt instead of refusing it.
	dialTimeout = 250 * time.Millisecond
)

// ErrNotReachable says that the server did not answer 200 in time.
var ErrNotReachable = errors.New("target not reachable")

// Server is whom to ask whether it serves.
type Server struct {
	Target        string      // such as http://server:8080
	Health        string      // where Path is asked over HTTP/1.1, such as http://server:9001; empty: at Target
	Path          string      // what answers 200 once it serves, such as /healthz
	Authorization string      // that header; empty: none
	TLS           *tls.Config // nil: none
	HTTP2         bool        // asked so, and in no other way
	Streams       int         // of HTTP/2, that it must take at once of a connection
}

// Wait polls the server until it answers 200, at most wait long, and gives the addresses
// that the name of the target resolved to: later requests go there without asking the DNS again.
func Wait(ctx context.Context, server Server, wait time.Duration) ([]netip.AddrPort, error) {
	base, err := url.Parse(server.Target)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	deadline := time.Now().Add(wait)
	for {
		began := time.Now()
		addresses, err := serves(ctx, base, server)
		if err == nil || errors.Is(err, ErrProtocol) {
			return addresses, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !time.Now().Before(deadline) {
			if errors.Is(err, errClosed) {
				// So does a server that has no use for `/`.
				return addresses, nil
			}
			return nil, fmt.Errorf("%w: %s within %s: %w", ErrNotReachable, server.failing(), wait, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(began.Add(pollEvery))):
		}
	}
}

func (s *Server) failing() string {
	if s.Health == "" {
		return fmt.Sprintf("%s%s did not answer 200", s.Target, s.Path)
	}
	return fmt.Sprintf("%s%s did not answer 200, or %s took no request,", s.Health, s.Path, s.Target)
}

// serves asks once whether a load can be sent, and gives the addresses of the target.
func serves(ctx context.Context, base *url.URL, server Server) ([]netip.AddrPort, error) {
	if server.Health == "" {
		addresses, err := probe(ctx, base, server)
		if server.HTTP2 {
			err = overHTTP2(ctx, base, server, err)
		}
		return addresses, err
	}
	apart, err := url.Parse(server.Health)
	if err != nil {
		return nil, err
	}
	if _, err := probe(ctx, apart, Server{Target: server.Health, Path: server.Path}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	addresses, err := resolve(ctx, base)
	if err != nil {
		return nil, err
	}
	if server.HTTP2 {
		return addresses, overHTTP2(ctx, base, server, nil)
	}
	return addresses, hasIt(ctx, base, server, addresses[0].String())
}

// probe resolves the name and asks the first address once.
func probe(ctx context.Context, base *url.URL, server Server) ([]netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	addresses, err := resolve(ctx, base)
	if err != nil {
		return nil, err
	}
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   server.TLS.Clone(),
			Protocols:         server.protocols(),
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addresses[0].String())
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(server.Target, "/")+server.Path, nil)
	if err != nil {
		return nil, err
	}
	if server.Authorization != "" {
		request.Header.Set("Authorization", server.Authorization)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", server.Path, response.Status)
	}
	return addresses, nil
}

func resolve(ctx context.Context, base *url.URL) ([]netip.AddrPort, error) {
	port := uint64(80)
	if base.Scheme == "https" {
		port = 443
	}
	if text := base.Port(); text != "" {
		var err error
		if port, err = strconv.ParseUint(text, 10, 16); err != nil {
			return nil, fmt.Errorf("target port %q: %w", text, err)
		}
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", base.Hostname())
	if err != nil {
		return nil, err
	}
	var v4, v6 []netip.AddrPort
	for _, address := range found {
		address = address.Unmap()
		if address.Is4() {
			v4 = append(v4, netip.AddrPortFrom(address, uint16(port)))
		} else {
			v6 = append(v6, netip.AddrPortFrom(address, uint16(port)))
		}
	}
	if len(v4) > 0 {
		return v4, nil
	}
	if len(v6) > 0 {
		return v6, nil
	}
	return nil, fmt.Errorf("%s has no address", base.Hostname())
}

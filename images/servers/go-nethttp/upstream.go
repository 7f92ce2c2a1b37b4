package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"
)

// upstream is the service whose users are passed on.
type upstream struct {
	client *http.Client
	url    string
}

// newUpstream returns nil when there is no `url`.
func newUpstream(url string) *upstream {
	if url == "" {
		return nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// Two per host and a hundred in all, which are the defaults, would close connections of a loaded server.
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, math.MaxInt
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	return &upstream{client: client, url: url}
}

// users fetches what the upstream answers now.
func (u *upstream) users(ctx context.Context) (any, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url, nil)
	if err != nil {
		return nil, err
	}
	response, err := u.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the upstream answered %s", response.Status)
	}
	var users any
	if err := json.Unmarshal(body, &users); err != nil {
		return nil, fmt.Errorf("the upstream's answer is no JSON: %w", err)
	}
	return users, nil
}

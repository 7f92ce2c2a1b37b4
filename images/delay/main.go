// Command delay stands between two tiers of a run and holds back what comes back by a set time, as
// a longer network would. The forwarding is Toxiproxy's; here is which links there are.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

const (
	variable    = "LAPTIME_DELAY"
	mostDelayMs = 10_000
)

// configuration is what LAPTIME_DELAY holds.
type configuration struct {
	HealthPort int    `json:"healthPort"`
	Links      []link `json:"links"`
}

// link forwards every connection to Port to the address To.
type link struct {
	Port    int    `json:"port"`
	To      string `json:"to"`
	DelayMs int    `json:"delayMs"` // added to every round trip
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	wanted, err := parse(os.Getenv(variable))
	if err == nil {
		err = run(ctx, wanted)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func parse(text string) (configuration, error) {
	var wanted configuration
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil {
		return wanted, fmt.Errorf("%s: %w", variable, err)
	}
	if len(wanted.Links) == 0 {
		return wanted, fmt.Errorf("%s: links: name at least one", variable)
	}
	ports := map[int]bool{wanted.HealthPort: true}
	for i, one := range wanted.Links {
		if _, _, err := net.SplitHostPort(one.To); err != nil {
			return wanted, fmt.Errorf("%s: links[%d].to: %w", variable, i, err)
		}
		if one.DelayMs < 0 || one.DelayMs > mostDelayMs {
			return wanted, fmt.Errorf("%s: links[%d].delayMs: %d is not within 0 … %d", variable, i, one.DelayMs, mostDelayMs)
		}
		if one.Port < 1 || one.Port > 65535 || ports[one.Port] {
			return wanted, fmt.Errorf("%s: links[%d].port: %d is no port or used twice", variable, i, one.Port)
		}
		ports[one.Port] = true
	}
	return wanted, nil
}

// run forwards until ctx ends. GET /healthz on the health port answers once all links stand.
func run(ctx context.Context, wanted configuration) error {
	logger := zerolog.New(os.Stderr).Level(zerolog.WarnLevel)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), logger)
	for _, one := range wanted.Links {
		proxy := toxiproxy.NewProxy(server, strconv.Itoa(one.Port), ":"+strconv.Itoa(one.Port), one.To)
		// All of it on the way back: a connection is set up by this program, so that half of it
		// on the way there would only delay the first bytes twice.
		toxic := fmt.Sprintf(`{"type":"latency","stream":"downstream","attributes":{"latency":%d}}`, one.DelayMs)
		if _, err := proxy.Toxics.AddToxicJson(bytes.NewReader([]byte(toxic))); err != nil {
			return fmt.Errorf("the delay of port %d: %w", one.Port, err)
		}
		if err := proxy.Start(); err != nil {
			return fmt.Errorf("port %d: %w", one.Port, err)
		}
		defer proxy.Stop()
	}
	health := &http.Server{
		Addr: ":" + strconv.Itoa(wanted.HealthPort),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" {
				http.NotFound(w, r)
			}
		}),
	}
	failed := make(chan error, 1)
	go func() { failed <- health.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return health.Close()
	}
}

package sharing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"go.k6.io/k6/v2/lib"
)

// ErrScript says that setup() or teardown() of the script came to no good end.
var ErrScript = errors.New("script")

// k6s is the REST API of this generator's own k6.
type k6s struct{ address string }

// status gives what k6 is doing.
func (k k6s) status(ctx context.Context) (lib.ExecutionStatus, error) {
	var said struct {
		Data struct {
			Attributes struct {
				Status lib.ExecutionStatus `json:"status"`
			} `json:"attributes"`
		} `json:"data"`
	}
	text, err := k.call(ctx, http.MethodGet, "status", nil)
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	return said.Data.Attributes.Status, err
}

// resume lets the executors begin.
func (k k6s) resume(ctx context.Context) error {
	_, err := k.call(ctx, http.MethodPatch, "status", []byte(`{"data":{"type":"status","id":"default","attributes":{"paused":false}}}`))
	return err
}

// setup runs setup() and gives what it returned, in JSON; nothing where that is undefined.
func (k k6s) setup(ctx context.Context) ([]byte, error) {
	text, err := k.call(ctx, http.MethodPost, "setup", nil)
	if err != nil {
		return nil, err
	}
	var said struct {
		Data struct {
			Attributes struct {
				Data json.RawMessage `json:"data"`
			} `json:"attributes"`
		} `json:"data"`
	}
	err = json.Unmarshal(text, &said)
	return said.Data.Attributes.Data, err
}

// setData says what setup() returned elsewhere.
func (k k6s) setData(ctx context.Context, data []byte) error {
	_, err := k.call(ctx, http.MethodPut, "setup", data)
	return err
}

func (k k6s) teardown(ctx context.Context) error {
	_, err := k.call(ctx, http.MethodPost, "teardown", nil)
	return err
}

func (k k6s) call(ctx context.Context, method, what string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+k.address+"/v1/"+what, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode == http.StatusOK {
		return text, err
	}
	var said struct {
		Errors []struct{ Detail string } `json:"errors"`
	}
	if json.Unmarshal(text, &said) == nil && len(said.Errors) > 0 && (what == "setup" || what == "teardown") {
		return nil, fmt.Errorf("%w: %s", ErrScript, said.Errors[0].Detail)
	}
	return nil, fmt.Errorf("k6 answered %s: %s", response.Status, text)
}

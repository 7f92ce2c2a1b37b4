package output

import (
	"strings"
	"time"

	"go.k6.io/k6/v2/metrics"
	"google.golang.org/grpc/codes"

	"laptime.dev/k6/internal/result"
)

// streamsName is the metric by which k6 says that a stream of gRPC began.
const streamsName = "grpc_streams"

// call counts a call of gRPC as the request that it is. How long a stream lasts is the script's doing as much as the
// server's: streams are in k6's own metrics alone. So is what has no URL: the calls by which k6 asks which methods there
// are, and whether the server is healthy.
func (o *Output) call(s *metrics.Sample, of *source) {
	if of.url == "" || o.streams[of.url] {
		return
	}
	if of.host == "" && !strings.Contains(of.url, "://") {
		of.host = hostOf("grpc://" + of.url)
	}
	latency := time.Duration(s.Value * float64(time.Millisecond))
	o.request(of, s.Time, latency, nil, &result.Sample{Server: int64(latency), Kind: kindOfCall(of.status)})
}

// kindOfCall translates the status of a call.
func kindOfCall(status int) result.Kind {
	switch codes.Code(status) {
	case codes.OK:
		return result.OK
	case codes.DeadlineExceeded:
		return result.Timeout
	case codes.Unavailable:
		return result.Connect
	}
	return result.Status
}

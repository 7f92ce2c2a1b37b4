// Grafana's dashboard linter, for `make lint`. Pinned to a commit: from v0.2.0 on it pulls in Grafana's own
// API modules, for a format that these dashboards do not have. Its own program has clients of three clouds
// and the parser of Loki's queries three hundred packages more: neither is compiled.
module laptime.dev/dashboards/linter

go 1.26.0

toolchain go1.26.8

require github.com/grafana/dashboard-linter v0.0.0-20241224134444-1765d94aec4a

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dennwc/varint v1.0.0 // indirect
	github.com/go-kit/log v0.2.1 // indirect
	github.com/go-logfmt/logfmt v0.6.0 // indirect
	github.com/grafana/loki/v3 v3.3.2 // indirect
	github.com/grafana/regexp v0.0.0-20240518133315-a468a5bfb3bc // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_golang v1.20.5 // indirect
	github.com/prometheus/client_model v0.6.1 // indirect
	github.com/prometheus/common v0.61.0 // indirect
	github.com/prometheus/procfs v0.15.1 // indirect
	github.com/prometheus/prometheus v0.55.1 // indirect
	github.com/rogpeppe/go-internal v1.13.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/grafana/loki/v3 => ./loki

// In the place of Grafana's Loki, of which the linter uses the parser of queries: 700 packages
// would be compiled for it, and none of our dashboards asks a Loki.
module github.com/grafana/loki/v3

go 1.26.0

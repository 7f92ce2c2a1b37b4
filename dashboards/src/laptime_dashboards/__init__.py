"""The Grafana dashboards of Laptime as code: one module per dashboard, one function per panel."""

"""The embedded single-node Kubernetes of Laptime, started from nothing on one Linux machine."""

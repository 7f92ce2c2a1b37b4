"""Laptime: a Kubernetes-native benchmark operator."""

__version__ = "0.1.0"

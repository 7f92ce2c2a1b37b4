"""Laptime's node agent: what every pod of a benchmark run uses, once a second."""

__version__ = "0.1.0"

"""The vocabulary of Laptime: spec, status and results as frozen, typed models.

Everything else imports from here; nothing here imports anything of Laptime.
"""

GROUP = "laptime.dev"
VERSION = "v1alpha1"
KIND = "BenchmarkRun"
PLURAL = "benchmarkruns"
API_VERSION = f"{GROUP}/{VERSION}"

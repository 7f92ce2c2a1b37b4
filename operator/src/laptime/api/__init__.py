"""The vocabulary of Laptime: spec, status and results as frozen, typed models.

Everything else imports from here; nothing here imports anything of Laptime.
"""

GROUP = "laptime.dev"
VERSION = "v1alpha1"
KIND = "BenchmarkRun"
PLURAL = "benchmarkruns"
SCENARIO_KIND = "BenchmarkScenario"
SCENARIO_PLURAL = "benchmarkscenarios"
API_VERSION = f"{GROUP}/{VERSION}"

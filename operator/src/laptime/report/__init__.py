"""Results as status rows, JSON, CSV, Markdown and HTML. Pure.

The HTML is in `laptime.report.html`, which needs more libraries than the operator has.
"""

from laptime.report.contents import End, Experiment, Report
from laptime.report.document import result_files, to_json
from laptime.report.markdown import comparison_to_markdown, to_markdown
from laptime.report.results import (
    SCHEMA_VERSION,
    Results,
    ResultsError,
    read_results,
    results_schema,
)
from laptime.report.status import status_rows
from laptime.report.table import to_csv

__all__ = [
    "SCHEMA_VERSION",
    "End",
    "Experiment",
    "Report",
    "Results",
    "ResultsError",
    "comparison_to_markdown",
    "read_results",
    "result_files",
    "results_schema",
    "status_rows",
    "to_csv",
    "to_json",
    "to_markdown",
]

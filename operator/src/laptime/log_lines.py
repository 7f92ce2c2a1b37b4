"""The operator's log: a record is a line, whatever strangers have put into it."""

from __future__ import annotations

import logging

from laptime.api.text import plain


class LineFormatter(logging.Formatter):
    """Writes one line for each record; those of a traceback begin with a mark, never with a time.

    So nobody's error message, name or answer can pass for a record of its own, or move the
    terminal of whoever reads the log.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and what follows it of a traceback."""
        when = self.formatTime(record)
        line = f"{when} {record.levelname} {record.name}: {plain(record.getMessage())}"
        if not record.exc_info:
            return line
        trace = self.formatException(record.exc_info).split("\n")
        return "\n".join([line, *(f"  | {plain(one)}" for one in trace)])

"""The report that one hands on: a page of HTML with charts. Needs the extra `report`."""

from laptime.report.html.page import manifest_to_repeat, to_html

__all__ = ["manifest_to_repeat", "to_html"]

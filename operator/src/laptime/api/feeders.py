"""Feeders of a scenario: where the values in its requests come from."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from laptime.api.base import Model, rule, rules
from laptime.api.config_maps import ConfigMapKey

MAX_FEEDERS = 8
NUMBER_END = 2**53
"""Whole numbers below it are the same in JSON for everybody."""

VALUE_NAME: dict[str, Any] = rules(
    rule(
        "self.matches('^[A-Za-z_][-_A-Za-z0-9]*$')",
        "must be letters, digits, '_' and '-', no digit first, such as users",
    ),
    rule("self != 'id'", "is what {id} stands for: choose another name, such as item"),
    minLength=1,
    maxLength=40,
)
"""Of what a template names."""


class Use(StrEnum):
    """Which row of a feeder comes next."""

    CYCLE = "cycle"
    ONCE = "once"
    RANDOM = "random"


class Per(StrEnum):
    """How long a row of a feeder stays the same."""

    SESSION = "session"
    REQUEST = "request"


class Csv(Model):
    """A table as CSV, written here or in a ConfigMap; its first line has the names of the columns.

    As RFC 4180 has it: a cell with a comma, a quotation mark or a line end stands in quotation
    marks.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.text) != has(self.configMap)",
                "write either text (the table itself) or configMap (where it is), exactly one of "
                "the two",
            )
        )
    )
    # The bounds are of what is written here: of a ConfigMap's text the operator says more.
    text: str | None = Field(
        None, description="The table.", json_schema_extra={"minLength": 1, "maxLength": 700_000}
    )
    config_map: ConfigMapKey | None = Field(None, description="Where the table is.")

    @property
    def content(self) -> str:
        """The table; ValueError where it still has to be read from a ConfigMap."""
        if self.text is None:
            raise ValueError("the table was not read from its ConfigMap yet")
        return self.text


class NumberRange(Model):
    """Whole numbers in their order, such as ids of rows that the seed makes."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("self.first <= self.last", "last must be at least first", ".last")
        )
    )
    first: int = Field(description="The first number.", ge=0, le=NUMBER_END)
    last: int = Field(description="The last number, which is used too.", ge=0, le=NUMBER_END)


class Feeder(Model):
    """Rows that the templates of requests take their values from."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.csv), has(self.range), has(self.values)].filter(one, one).size() == 1",
                "write exactly one of csv (a table), range (whole numbers) and values (a list)",
            )
        )
    )
    name: str = Field(
        description="Its name in templates: {{name}}, or {{name.column}} for a table.",
        json_schema_extra=VALUE_NAME,
    )
    csv: Csv | None = Field(None, description="A table.")
    range: NumberRange | None = Field(None, description="Whole numbers, however many.")
    values: list[Annotated[str, Field(max_length=1024)]] | None = Field(
        None, description="A list of values.", min_length=1, max_length=1000
    )
    use: Use = Field(
        Use.CYCLE,
        description="cycle: in turn, again and again. once: each at most once in a trial, its "
        "warm-up included. random: any of them, drawn by the seed of the run; for a Service that "
        "is there already anew in each trial.",
    )
    per: Per = Field(
        Per.SESSION,
        description="session: a row stays for all steps of a session. request: each request that "
        "uses it has a row of its own.",
    )

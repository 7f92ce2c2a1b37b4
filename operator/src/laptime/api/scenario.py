"""What a user writes: the spec of a BenchmarkScenario, the work that servers are compared on.

The scenarios that come with Laptime are documents of this very model, and the CRD is generated from
it. What the API server cannot check of it is in `laptime.catalog.problems`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, WithJsonSchema

from laptime.api.base import BY_NAME, Model, rule, rules
from laptime.api.config_maps import ConfigMapKey
from laptime.api.feeders import MAX_FEEDERS, Feeder
from laptime.api.loads import ThinkTime
from laptime.api.names import IMAGE, path_in_image
from laptime.api.published import Published
from laptime.api.sessions import (
    LOWER_CASE_NAME,
    MAX_CAPTURES,
    MAX_SESSIONS,
    Capture,
    Session,
)
from laptime.api.side_services import MAX_SIDE_SERVICES, SideService

MAX_REQUESTS = 32
MAX_CHECKS = 64

ID_PLACEHOLDER = "{id}"
"""Stands in a path or a body for the id of a row."""

_ANY = {"x-kubernetes-preserve-unknown-fields": True}

Json = Annotated[JsonValue, WithJsonSchema(_ANY)]
JsonObject = Annotated[dict[str, Any], WithJsonSchema({"type": "object", **_ANY})]
HeaderValue = Annotated[str, Field(max_length=2048)]


class Sql(Model):
    """Statements, written here or in a ConfigMap; each ends with a semicolon."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.sql) != has(self.configMap)",
                "write either sql (the statements themselves) or configMap (where they are), "
                "exactly one of the two",
            )
        )
    )
    # The bounds are of what is written here: of a ConfigMap's text the operator says more.
    sql: str | None = Field(
        None,
        description="The statements.",
        json_schema_extra={"minLength": 1, "maxLength": 500_000},
    )
    config_map: ConfigMapKey | None = Field(None, description="Where the statements are.")

    @property
    def text(self) -> str:
        """The statements; ValueError where they are elsewhere: in a ConfigMap, or in an image."""
        if self.sql is None:
            raise ValueError("the statements are in an image, or their ConfigMap was not read yet")
        return self.sql


class InitSql(Sql):
    """Statements, written here, in a ConfigMap or in an image; each ends with a semicolon."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.sql), has(self.configMap), has(self.image)].exists_one(one, one)",
                "write either sql (the statements themselves), configMap (where they are) or "
                "image (for more than ConfigMaps hold), exactly one of the three",
            ),
            rule(
                "has(self.image) == has(self.file)",
                "file is one of an image: write both, such as file: /data/rows.sql, or neither",
                ".file",
            ),
        )
    )
    image: str | None = Field(
        None,
        description="An image that has the statements in a file, for more than ConfigMaps hold. "
        "The file is copied before the database starts; Laptime starts nothing in the image.",
        json_schema_extra=IMAGE,
    )
    file: str | None = Field(
        None,
        description="The file of the image. All files of images together have at most 1 GiB.",
        json_schema_extra=path_in_image("file", "/data/rows.sql"),
    )


_Statements = Annotated[list[Sql], Field(max_length=16)]
_InitStatements = Annotated[list[InitSql], Field(max_length=16)]
_Extension = Annotated[
    str,
    Field(
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z][-_a-z0-9]*$')",
                "must be the name of an extension of Postgres, such as pg_trgm",
            ),
            minLength=1,
            maxLength=63,
        )
    ),
]


class PostgresData(Model):
    """Schema and rows in Postgres. All of it runs as a role that owns the database, no more."""

    extensions: list[_Extension] = Field(
        default_factory=list,
        description="Extensions that are made before the schema; the administrator says which are "
        "allowed. `pg_stat_statements` is always there.",
        max_length=16,
    )
    schema_: _InitStatements = Field(
        alias="schema", description="What makes the tables, in this order.", min_length=1
    )
    seed: _InitStatements = Field(
        default_factory=list, description="What makes the rows, in this order."
    )
    reset: _Statements = Field(
        default_factory=list,
        description="What brings the rows back to the same state before each trial and each check. "
        "Where requests only read, none.",
    )
    warm: _Statements = Field(
        default_factory=list,
        description="What is asked last before each trial and each check, so that all of it is in "
        "memory.",
    )


class SqliteData(Model):
    """Schema and rows in SQLite: each trial begins with a fresh file."""

    schema_: _Statements = Field(
        alias="schema", description="What makes the tables, in this order.", min_length=1
    )
    seed: _Statements = Field(
        default_factory=list, description="What makes the rows, in this order."
    )


class Data(Model):
    """What is in the database; with both, a run chooses one by its topology."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.postgres) || has(self.sqlite)",
                "write postgres or sqlite or both; a scenario without a database has no data",
            )
        )
    )
    postgres: PostgresData | None = Field(None, description="In Postgres.")
    sqlite: SqliteData | None = Field(None, description="In SQLite.")


class IdUse(StrEnum):
    """How often a trial may use a prepared id."""

    CYCLE = "cycle"
    ONCE = "once"


class Ids(Model):
    """The ids that requests carry: whole numbers of rows that seed and reset make."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.first <= self.last && self.last - self.first < 1000000",
                "last must be at least first, and both at most 1,000,000 ids",
                ".last",
            )
        )
    )
    first: int = Field(description="The first id.", ge=0, le=2**53)
    last: int = Field(description="The last id, which is used too.", ge=0, le=2**53)
    use: IdUse = Field(description="Again and again in turn, or each at most once in a trial.")

    @property
    def count(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


class Exchange(Model):
    """A request, and the status that a right answer has.

    Path, values of headers and cookies, and body are templates: {{users.name}} is a value of a
    feeder, {{token}} one that was captured.
    """

    name: str = Field(
        description="Its name in figures and messages.", json_schema_extra=LOWER_CASE_NAME
    )
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field(
        "GET", description="The method."
    )
    path: str = Field(
        description="Path and query, such as /tasks/{id}?full=1; what no URL has is written "
        "percent-encoded, such as %20 for a space and %22 for a quotation mark.",
        json_schema_extra=rules(
            rule(
                "self.matches('^/[!-~]*$') && !self.startsWith('//') && !self.contains('#')",
                "must be a path that begins with one /, of printable ASCII without spaces, such as "
                "/tasks?page=2: which server is asked, the run says",
            ),
            minLength=1,
            maxLength=2048,
        ),
    )
    headers: dict[str, HeaderValue] = Field(
        default_factory=dict,
        description="Header fields, such as content-type.",
        json_schema_extra=rules(
            rule(
                "self.all(n, self[n].matches('^[ -~]*$'))",
                "values of header fields are printable ASCII, such as application/json",
            ),
            maxProperties=16,
        ),
    )
    cookies: dict[str, HeaderValue] = Field(
        default_factory=dict,
        description="Cookies, by their names.",
        json_schema_extra=rules(
            rule(
                "self.all(n, self[n].matches('^[-!#$%&()*+./:<=>?@^_|~{}0-9A-Za-z]*$'))",
                "values of cookies have no spaces, quotes, commas, semicolons or backslashes",
            ),
            maxProperties=16,
        ),
    )
    body: str | None = Field(None, description="The body as it is sent.", max_length=65_536)
    expect_status: int = Field(200, description="Status of a right answer.", ge=200, le=599)
    statements: float | None = Field(
        None,
        description="Statements about tables that one of these costs: a server that sends fewer is "
        "refused. Left out: not known, and not counted.",
        ge=0,
        le=1000,
    )

    captures: list[Capture] = Field(
        default_factory=list,
        description="What of the answer is kept: for the next steps of the same session, and of a "
        "check for the checks after it.",
        max_length=MAX_CAPTURES,
        json_schema_extra=BY_NAME,
    )

    @property
    def writes(self) -> bool:
        """Whether its method is one by which something is changed."""
        return self.method != "GET"

    @property
    def sent_headers(self) -> dict[str, str]:
        """The header fields as they are sent, cookies among them."""
        if not self.cookies:
            return dict(self.headers)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {**self.headers, "cookie": cookies}


_IDS_RULE = rule(
    "has(self.ids) == (self.path.contains('{id}') || (has(self.body) && "
    "self.body.contains('{id}')))",
    "ids goes with {id}: write {id} in path or body where the id belongs, and ids with the rows "
    "that there are",
    ".ids",
)


class Request(Exchange):
    """One kind of request that a load sends: an endpoint in figures."""

    model_config = ConfigDict(json_schema_extra=rules(_IDS_RULE))
    ids: Ids | None = Field(None, description="What stands for {id} in path and body.")
    asks_upstream: bool = Field(
        False, description="The server asks the run's upstream once for each of these."
    )
    wait_seconds: float = Field(
        0.0,
        description="How long the server waits on purpose, without any CPU.",
        ge=0,
        le=60,
    )
    weight: int = Field(
        1,
        description="How often it comes beside the others in a load that has neither endpoints nor "
        "mix. A step of a session comes as often as its session.",
        ge=1,
        le=1000,
    )
    think_time: ThinkTime | None = Field(
        None,
        description="How long a user waits after the answer before his next request, where a load "
        "says nothing else; it is part of no response time.",
    )


class Answers(StrEnum):
    """How the answers to the same request relate to each other."""

    SAME = "same"
    DIFFERENT = "different"


class Afterwards(Model):
    """What must hold in Postgres after an answer."""

    query: str = Field(
        description="A query; what it asks may not change anything.", min_length=1, max_length=4096
    )
    rows: Json = Field(
        None, description="What it answers: an array of rows, each an array of its values."
    )


class Check(Exchange):
    """One request of the contract, and what a right answer to it is."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!self.keepsId || has(self.jsonSchema)",
                "keepsId takes the field id of the answer: write a jsonSchema that requires it",
                ".keepsId",
            ),
            rule(
                "self.answers == 'same' || self.times >= 2",
                "answers: different compares several answers: write times of 2 or more",
                ".times",
            ),
            rule(
                "self.minSeconds < self.timeoutSeconds",
                "minSeconds must be smaller than timeoutSeconds",
                ".minSeconds",
            ),
            rule(
                "!has(self.constant) || !self.constant || self.answers == 'same'",
                "an answer that is constant is not different at times: leave constant or answers "
                "out",
                ".constant",
            ),
        )
    )
    expect_headers: dict[str, HeaderValue] = Field(
        default_factory=dict,
        description="Header fields that the answer must have, with exactly these values.",
        json_schema_extra={"maxProperties": 16},
    )
    content_type: str | None = Field(
        None, description="Media type without parameters.", max_length=127
    )
    json_schema: JsonObject | None = Field(None, description="JSON Schema of the answer.")
    expected: Json = Field(
        None,
        description='The whole answer as JSON, in which "{id}" is the kept id; left out: not '
        "compared.",
    )
    expected_part: Json = Field(
        None,
        description="JSON that the answer must contain: its objects may have further fields. "
        'Arrays are compared item by item. "{id}" is the kept id.',
    )
    times: int = Field(
        2, description="How often it is asked; 1 where it changes data.", ge=1, le=100
    )
    answers: Answers = Field(
        Answers.SAME, description="different: not all of them may be the same."
    )
    constant: bool | None = Field(
        None,
        description="Whether each right answer is the same throughout a load, down to its bytes: "
        "one that differs is an error then. Left out: it is where the whole answer is known "
        "(expected) and what else the load sends is GET, or the request has statements: 0; and "
        "where it is that of the upstream.",
    )
    keeps_id: bool = Field(
        False, description="The id of this answer stands for {id} in the checks after it."
    )
    same_as_upstream: bool = Field(
        False, description="The answer is to be what the run's upstream answers."
    )
    min_seconds: float = Field(
        0.0, description="An answer before that is no right one.", ge=0, le=60
    )
    timeout_seconds: float = Field(
        10.0, description="Longest time that the answer may take.", ge=0.001, le=120
    )
    afterwards: list[Afterwards] = Field(
        default_factory=list,
        description="What must hold in Postgres when it was asked; where the run has no Postgres, "
        "nobody asks.",
        max_length=8,
    )

    @property
    def compares_body(self) -> bool:
        """Whether it says what stands in the body of a right answer."""
        compared = (self.expected, self.expected_part, self.json_schema)
        return compared != (None, None, None)

    @property
    def knows_body(self) -> bool:
        """Whether it says anything of the body of a right answer, which then has one."""
        return self.content_type is not None or self.compares_body or self.same_as_upstream


class BenchmarkScenarioSpec(Model):
    """The spec of a BenchmarkScenario: data, requests, and what a right answer is."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.data) || self.checks.all(c, !has(c.afterwards) || "
                "c.afterwards.size() == 0)",
                "afterwards asks a database: write data, or leave afterwards out",
                ".checks",
            )
        )
    )
    title: str = Field("", description="In a few words.", max_length=120)
    description: str = Field("", description="In a sentence or two.", max_length=2000)
    data: Data | None = Field(
        None, description="Schema and rows; left out: the work needs no database."
    )
    services: list[SideService] = Field(
        default_factory=list,
        description="What stands around the servers: a cache, a queue, a stub of a third party.",
        max_length=MAX_SIDE_SERVICES,
        json_schema_extra=BY_NAME,
    )
    feeders: list[Feeder] = Field(
        default_factory=list,
        description="Where the values in requests come from. In a check stands the first row.",
        max_length=MAX_FEEDERS,
        json_schema_extra=BY_NAME,
    )
    requests: list[Request] = Field(
        description="What a load sends, in turn or by weight.",
        min_length=1,
        max_length=MAX_REQUESTS,
        json_schema_extra=BY_NAME,
    )
    sessions: list[Session] = Field(
        default_factory=list,
        description="Requests that belong together; one that no session has as a step is sent "
        "alone.",
        max_length=MAX_SESSIONS,
        json_schema_extra=BY_NAME,
    )
    checks: list[Check] = Field(
        description="What is asked before anything is measured, in this order, and what a right "
        "answer is.",
        min_length=1,
        max_length=MAX_CHECKS,
        json_schema_extra=BY_NAME,
    )
    published: Published | None = Field(
        None, description="Figures that somebody has published about this work."
    )

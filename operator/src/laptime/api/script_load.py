"""A load that is a k6 script of the user's own."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from laptime.api.base import BY_NAME, Model, rule, rules
from laptime.api.durations import LoadDuration, WarmupDuration, parse_duration
from laptime.api.names import FILE_NAME, IMAGE, path_in_image, variable_name

SCRIPT_FOLDER = "/scripts"
"""Where an image has its script, when the run does not say otherwise."""


class Checks(StrEnum):
    """What the checks of a script are for."""

    JUDGE = "judge"
    INFORM = "inform"


class ScriptVariable(Model):
    """One variable that a script finds in `__ENV`."""

    name: str = variable_name(
        rule(
            "!self.startsWith('K6_')",
            "variables that begin with K6_ are settings of k6 itself: use options, tags or "
            "the options of the script",
        ),
        rule(
            "!(self in ['TARGET', 'HOME']) && !self.startsWith('LAPTIME_')",
            "is set by Laptime: give your variable another name, and $(TARGET) as its value "
            "for the address of the server",
        ),
    )
    value: str = Field(
        "",
        description="Its value; $(TARGET) in it becomes the address of the server, such as "
        "http://run-server-axum:8080, and $(TARGET_HOST) its host and port alone.",
        max_length=1024,
    )


class ScriptTag(Model):
    """One tag that all samples of a script get."""

    name: str = Field(
        description="Name of the tag.",
        json_schema_extra=rules(
            rule(
                "self.matches('^[A-Za-z_][-._A-Za-z0-9]*$')",
                "must be a name of letters, digits, '-', '.' and '_' that starts with a letter",
            ),
            rule(
                "!(self in ['check', 'error', 'error_code', 'expected_response', 'group', 'ip', "
                "'iter', 'method', 'name', 'ocsp_status', 'proto', 'rpc_type', 'scenario', "
                "'service', 'status', 'subproto', 'tls_version', 'url', 'vu'])",
                "is a tag that k6 sets itself: give yours another name",
            ),
            minLength=1,
            maxLength=64,
        ),
    )
    value: str = Field(description="Its value.", min_length=1, max_length=256)


class ScriptStage(Model):
    """One stage of the number of virtual users."""

    duration: LoadDuration = Field(description="How long it takes, such as 30s.")
    target: int = Field(description="Virtual users at its end.", ge=0, le=10000)


class ScriptOptions(Model):
    """Options that take the place of the script's own, as k6's flags of these names do."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.stages) || (!has(self.duration) && !has(self.iterations))",
                "stages say how long it takes: leave duration and iterations out",
                ".stages",
            ),
            rule(
                "!has(self.iterations) || self.iterations >= (has(self.vus) ? self.vus : 1)",
                "iterations must be at least vus, so that each virtual user has one to run",
                ".iterations",
            ),
        )
    )
    vus: int | None = Field(None, description="Virtual users.", ge=1, le=10000)
    duration: LoadDuration | None = Field(None, description="How long they run, such as 30s.")
    iterations: int | None = Field(
        None,
        description="Iterations in all, of all virtual users together.",
        ge=1,
        le=1_000_000_000,
    )
    stages: list[ScriptStage] | None = Field(
        None, description="Virtual users over time.", min_length=1, max_length=64
    )
    rate: int | None = Field(
        None,
        description="Most requests per second, of all virtual users together (k6's rps).",
        ge=1,
        le=1_000_000,
    )

    @property
    def longest_seconds(self) -> float | None:
        """How long they let the script go on, in seconds; None where they do not say it."""
        if self.stages is not None:
            return sum(parse_duration(stage.duration) for stage in self.stages)
        return None if self.duration is None else parse_duration(self.duration)


ConfigMapName = Annotated[
    str,
    Field(
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of a ConfigMap in the namespace of the run, such as my-k6-script",
            ),
            minLength=1,
            maxLength=253,
        )
    ),
]


class ScriptLoad(Model):
    """A k6 script of the user's own, from ConfigMaps in the namespace of the run or an image."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.configMap) != has(self.image)",
                "write either configMap (what fits into ConfigMaps) or image (what is larger), "
                "exactly one of the two",
            ),
            rule(
                "has(self.image) || !self.key.contains('/')",
                "must be a key of the ConfigMap, without '/'; only an image has folders",
                ".key",
            ),
            rule(
                "!has(self.image) || !has(self.files) || self.files.size() == 0",
                "files are more ConfigMaps: with image, put them into its folder",
                ".files",
            ),
            rule(
                "has(self.image) || !has(self.folder)",
                "folder is one of an image: leave it out",
                ".folder",
            ),
        )
    )
    config_map: ConfigMapName | None = Field(None, description="Name of the ConfigMap.")
    image: str | None = Field(
        None,
        description="Instead of configMap: an image that has the script with all that it imports "
        "and opens. Its files are copied before each trial; Laptime starts nothing in it.",
        json_schema_extra=IMAGE,
    )
    folder: str | None = Field(
        None,
        description="The folder of the image that is copied, with all below it; left out: "
        f"{SCRIPT_FOLDER}.",
        json_schema_extra=path_in_image("folder", SCRIPT_FOLDER),
    )
    key: str = Field(
        "script.js",
        description="Key of the script in the ConfigMap, or its path in the folder of the image; "
        "or of an archive that k6 archive made of it.",
        json_schema_extra=rules(
            rule(
                f"self.matches('^{FILE_NAME}(/{FILE_NAME})*$')",
                "must be a key of the ConfigMap, such as script.js, or a path in the folder of "
                "the image, such as load/main.js",
            ),
            minLength=1,
            maxLength=253,
        ),
    )
    files: list[ConfigMapName] = Field(
        default_factory=list,
        description="More ConfigMaps, whose keys are files beside the script: what it imports and "
        "opens. Of keys that several of them have the last one counts.",
        max_length=8,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    duration: LoadDuration = Field(
        "5m",
        description="Longest time that the script takes; the time left is reckoned with it. Its "
        "options may not take longer. A script that is still running half a minute later is ended, "
        "and measures nothing.",
    )
    env: list[ScriptVariable] = Field(
        default_factory=list,
        description="What the script finds in __ENV, beside TARGET.",
        max_length=32,
        json_schema_extra=BY_NAME,
    )
    options: ScriptOptions | None = Field(
        None,
        description="Options that take the place of the script's own. vus, duration, iterations "
        "and stages take the place of all its scenarios.",
    )
    tags: list[ScriptTag] = Field(
        default_factory=list,
        description="Tags of all samples, in place of the script's own tags for all of them.",
        max_length=16,
        json_schema_extra=BY_NAME,
    )
    warmup: WarmupDuration | None = Field(
        None,
        description="Time from the first thing that a scenario does, which is counted nowhere; it "
        "is part of duration, and shorter. Left out: what the scenario named warmup does is not "
        "counted.",
    )
    checks: Checks = Field(
        Checks.JUDGE,
        description="judge: a check that fails more than once in a thousand makes the figures "
        "doubtful, and one that fails more than once in a hundred invalid. inform: checks are "
        "shown, and judge nothing.",
    )

    @property
    def config_maps(self) -> list[str]:
        """All ConfigMaps that the files of the script come from, its own first."""
        return [] if self.config_map is None else [self.config_map, *self.files]

"""A TestRun of k6-operator as a BenchmarkRun, and what of it is left out. Pure.

Nothing is left out without a word: each field that a TestRun has is translated here, or named with
the reason why not and what to write instead.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from laptime.api import API_VERSION, KIND
from laptime.api.durations import duration_of_any_digits
from laptime.api.pull_secret import MAX_PULL_SECRETS
from laptime.cli.init.translation import Document, Translation
from laptime.cli.mistakes import Mistake

KINDS = ("TestRun", "K6")
"""What k6-operator calls it, now and in earlier versions."""
_API_GROUP = "k6.io/"
_MOST_GENERATORS = 16
_LONGEST_SECONDS = 300
_TARGET = "$(TARGET)"
_TARGET_HOST = "$(TARGET_HOST)"
# Without the path, which stays in the script's variable.
_URL = re.compile("^(https?|wss?)://([^/?#]+)")
_SERVICE = re.compile("[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_IN_FOLDER = re.compile("((?:/[^/]+)+)/([^/]+)")
_PLACEHOLDER: Document = {"image": "registry.example/my-server:1.0", "port": 8080}
_OURS = re.compile("LAPTIME_.*|TARGET|HOME")
# k6's own variables that a run has a field for.
_SETTINGS = {
    "K6_VUS": "vus",
    "K6_DURATION": "duration",
    "K6_ITERATIONS": "iterations",
    "K6_RPS": "rate",
    "K6_STAGES": "stages",
}
_SHORT = {"-e": "env", "-u": "vus", "-d": "duration", "-i": "iterations", "-s": "stage"}
_SHORT |= {"-o": "out", "-v": "verbose", "-q": "quiet", "-p": "paused", "-l": "linger"}
_OPTIONS = {"vus": "vus", "duration": "duration", "iterations": "iterations", "rps": "rate"}
# Flags without a value of their own.
_SWITCHES = {
    *("verbose", "quiet", "paused", "linger", "no-color", "no-setup", "no-teardown"),
    *("no-thresholds", "no-summary", "no-usage-report", "insecure-skip-tls-verify", "throw"),
    *("no-connection-reuse", "no-vu-connection-reuse", "discard-response-bodies"),
    *("include-system-env-vars", "no-cookies-reset"),
}
_NODES = "generators keep away from what they drive by themselves, where there are nodes enough"
_POD = "pods of a run have no rights, volumes or settings of their own"
_FIGURES = "figures are in status, report and Grafana"
_FLAGS = {
    "out": _FIGURES,
    "paused": "generators begin together by themselves",
    "linger": "generators end when the script does",
    "quiet": "nobody reads the log of a generator but for errors",
    "no-color": "nobody reads the log of a generator but for errors",
    "verbose": "nobody reads the log of a generator but for errors",
    "no-thresholds": "thresholds are objectives: take those out that are not meant",
    "no-summary": _FIGURES,
    "summary-mode": _FIGURES,
    "summary-export": _FIGURES,
    "execution-segment": "parallelism divides the load",
    "execution-segment-sequence": "parallelism divides the load",
}
_SPEC = {
    "separate": _NODES,
    "ports": "generators have no ports of their own",
    "initializer": "k6 reads the script in the generator itself; what is wrong with it is said",
    "starter": "generators begin together without another pod",
    "scuttle": "generators ask meshes for no proxy; what adds one in spite of it is said",
    "cleanup": "deleting the run deletes all of it; history of the chart bounds how many stay",
    "cloud": "nothing is sent to Grafana Cloud k6",
    "token": "nothing is sent to Grafana Cloud k6",
    "testRunId": "nothing is sent to Grafana Cloud k6",
    "quiet": "nobody reads the log of a generator but for errors",
    "paused": "generators begin together by themselves",
}
_K6 = "a k6 of one's own is the administrator's choice: images.generator of the chart"
_RUNNER = {
    "image": _K6,
    "imagePullPolicy": "images are the administrator's choice",
    "nodeSelector": _NODES,
    "affinity": _NODES,
    "tolerations": _NODES,
    "topologySpreadConstraints": _NODES,
    "priorityClassName": _NODES,
    "schedulerName": _NODES,
    "metadata": "labels and annotations of pods are Laptime's",
    "envFrom": "write the variables in env, or the script's ConfigMap; no Secret reaches a script",
    "readinessProbe": "Laptime knows when a generator is ready",
    "livenessProbe": "Laptime knows when a generator is ready",
    "initContainers": "put what they fetch or make into the script's ConfigMap",
    "volumes": "put the files into the script's ConfigMap",
    "volumeMounts": "put the files into the script's ConfigMap",
}

# Fields of fields, each after what it stands in.
_FIELDS = (
    *("metadata", "spec", "spec.script", "spec.script.configMap", "spec.script.volumeClaim"),
    *("spec.runner", "spec.runner.resources"),
    *("spec.runner.resources.limits", "spec.runner.resources.requests"),
)
_LISTS = {"spec.runner.env": "name: and value:", "spec.runner.imagePullSecrets": "name:"}


def is_testrun(document: Any) -> bool:
    """Return whether a document is a TestRun of k6-operator."""
    return (
        isinstance(document, dict)
        and document.get("kind") in KINDS
        and str(document.get("apiVersion", "")).startswith(_API_GROUP)
    )


def translated(document: Document) -> Translation:
    """Return a TestRun as a run.

    Raises:
        Mistake: it has no script, or what it has cannot be read.
    """
    _check_shapes(document)
    spec: Document = document.get("spec") or {}
    runner: Document = spec.get("runner") or {}
    into = Translation()
    script = _script(spec, runner, into)
    values = _Values()
    _arguments(str(spec.get("arguments") or ""), values, into)
    _variables(runner, values, into)
    script["duration"] = _longest(values.options)
    script |= values.fields(into)
    metadata = document.get("metadata") or {}
    service = _service(values.address, metadata.get("namespace"))
    run: Document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            key: metadata[key]
            for key in ("name", "namespace")
            if isinstance(metadata.get(key), str)
        },
        "spec": {
            "scenario": "hello",
            "servers": [{"name": "mine", **(service or _PLACEHOLDER)}],
            "loads": [{"name": "k6", "script": script}],
            "repetitions": 5,
        },
    }
    if generator := _generator(spec, runner, into):
        run["spec"]["generator"] = generator
    runners, rate = spec.get("parallelism"), values.options.get("rate")
    if rate and isinstance(runners, int) and runners > 1:
        # Each runner had all of it by itself; generators of a run share it.
        script["options"]["rate"] = runners * rate
        into.to_write.append(
            f"spec.loads[0].script.options.rate: whether {rate} requests per second of each of "
            f"{runners} runners are meant; the generators of a run share its rate"
        )
    if names := _pull_secrets(runner, into):
        run["spec"]["imagePullSecrets"] = [{"name": name} for name in names]
    for key in spec:
        if key in _SPEC:
            into.left_out.append(f"spec.{key}: {_SPEC[key]}")
        elif key not in ("script", "parallelism", "arguments", "runner"):
            into.left_out.append(f"spec.{key}: Laptime does not know it")
    for key in runner:
        if key == "image" and script.get("image"):
            into.left_out.append(f"spec.runner.image: the script is taken from it, and {_K6}")
        elif key not in ("env", "resources", "imagePullSecrets"):
            into.left_out.append(f"spec.runner.{key}: {_RUNNER.get(key, _POD)}")
    into.to_write += [
        "spec.servers: whether the Service is meant that the script's address names; or images, "
        "which a run starts itself, each alone and with a fresh pod for each trial"
        if service
        else "spec.servers: the servers under test: images, which a run starts itself, or Services "
        "of the namespace; a TestRun finds its server where the script says",
        "spec.scenario: the work, by which the answers of the servers are checked before they are "
        "measured (`laptime scenarios`, or one of your own)",
        "spec.loads[0].script.duration: the longest time that the script takes",
        "spec.loads[0].script.warmup: what of the script is not measured, such as 10s",
    ]
    into.run = run
    return into


def _longest(options: Document) -> str:
    """Return the longest time that a script may take: five minutes, or as its options say."""
    stages = options.get("stages") or []
    parts = [one["duration"] for one in stages] or [options.get("duration", "0s")]
    seconds = sum(duration_of_any_digits(one) for one in parts)
    return f"{math.ceil(seconds)}s" if seconds > _LONGEST_SECONDS else "5m"


def _check_shapes(document: Document) -> None:
    """Look at what is taken apart: no API server has seen it yet.

    Raises:
        Mistake: a field holds another kind of value than k6-operator takes there.
    """
    for place in _FIELDS:
        found = _at(document, place)
        if found and not isinstance(found, dict):
            raise Mistake(f"{place}: write fields, such as name: x, not {found!r}")
    for place, fields in _LISTS.items():
        found = _at(document, place) or []
        if not isinstance(found, list):
            raise Mistake(f"{place}: write a list, not {found!r}")
        for index, one in enumerate(found):
            if not isinstance(one, dict):
                raise Mistake(f"{place}[{index}]: write {fields}, not {one!r}")


def _at(document: Document, place: str) -> Any:
    node: Any = document
    for key in place.split("."):
        node = (node or {}).get(key)
    return node


def _service(address: str | None, namespace: Any) -> Document | None:
    """Return the server that an address of a Service in the TestRun's own namespace means."""
    if address is None:
        return None
    try:
        url = urlsplit(address)
        port = url.port or 80
    except ValueError:
        return None
    name, *rest = (url.hostname or "").split(".")
    inside = not rest or (rest[0] == namespace and rest[1:2] in ([], ["svc"]))
    if url.scheme != "http" or not inside or not _SERVICE.fullmatch(name) or name == "localhost":
        return None
    return {"service": {"name": name, "port": port}}


def _script(spec: Document, runner: Document, into: Translation) -> Document:
    script: Document = spec.get("script") or {}
    if config_map := script.get("configMap"):
        key = str(config_map.get("file") or "test.js")
        return {"configMap": str(config_map.get("name")), "key": key}
    volume, local = script.get("volumeClaim"), script.get("localFile")
    if not volume and not local:
        raise Mistake("the TestRun has no spec.script: write configMap, volumeClaim or localFile")
    file = str((volume or {}).get("file") or "test.js") if volume else str(local)
    if not volume and runner.get("image") and (found := _IN_FOLDER.fullmatch(file)):
        # It is in the runner's image, with k6.
        into.to_write.append(
            f"spec.loads[0].script.folder: {found[1]} and all below it is taken from the image; "
            "name a folder above it where the script imports or opens files from there"
        )
        return {"image": str(runner["image"]), "folder": found[1], "key": found[2]}
    name = file.rsplit("/", 1)[-1]
    where = f"spec.script.{'volumeClaim' if volume else 'localFile'}"
    into.left_out.append(
        f"{where}: a run reads its script from a ConfigMap, or from an image. Make one: kubectl "
        f"create configmap k6-script --from-file={name} (and --from-file for each file that it "
        "imports or opens; or one archive of `k6 archive` for all)"
    )
    return {"configMap": "k6-script", "key": name}


def _pull_secrets(runner: Document, into: Translation) -> list[str]:
    said = (one.get("name") for one in runner.get("imagePullSecrets") or [])
    names = list(dict.fromkeys(str(name) for name in said if name))
    if len(names) > MAX_PULL_SECRETS:
        into.left_out.append(
            f"spec.runner.imagePullSecrets: a run has at most {MAX_PULL_SECRETS}; left out are "
            f"{', '.join(names[MAX_PULL_SECRETS:])}"
        )
    return names[:MAX_PULL_SECRETS]


def _generator(spec: Document, runner: Document, into: Translation) -> Document:
    generator: Document = {}
    parallelism = spec.get("parallelism")
    if isinstance(parallelism, int) and parallelism > 1:
        generator["parallelism"] = min(parallelism, _MOST_GENERATORS)
        if parallelism > _MOST_GENERATORS:
            into.left_out.append(
                f"spec.parallelism: {parallelism} is more than {_MOST_GENERATORS} generators; "
                "give each of them more CPU instead"
            )
    asked: Document = runner.get("resources") or {}
    for name in ("cpu", "memory"):
        said = {part: (asked.get(part) or {}).get(name) for part in ("limits", "requests")}
        value = said["limits"] or said["requests"]
        if value is not None:
            generator.setdefault("resources", {})[name] = str(value)
        if said["limits"] and said["requests"] not in (None, said["limits"]):
            into.left_out.append(
                f"spec.runner.resources.requests.{name}: of a generator request and limit are the "
                "same; the limit was taken"
            )
    return generator


@dataclass
class _Values:
    """What a script is told, from arguments and from variables."""

    env: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    address: str | None = None
    """The one among the variables, once it is known."""

    def fields(self, into: Translation) -> Document:
        """Return the fields of `script`; the one host among the variables becomes the target."""
        found_urls = {name: one for name, value in self.env.items() if (one := _URL.match(value))}
        hosts = {one[2] for one in found_urls.values()}
        if len(hosts) == 1:
            (host,) = hosts
            self.address = min(self.env[name] for name in found_urls)
            for name, value in self.env.items():
                self.env[name] = _aimed(value, host)
                if self.env[name] != value:
                    into.left_out.append(
                        f"the address {value} in the variable {name}: it is {self.env[name]} now, "
                        "the server that is measured"
                    )
        else:
            into.to_write.append(
                "spec.loads[0].script.env: give the variable that the script takes the address of "
                "its server from the value $(TARGET), or host and port from $(TARGET_HOST); a "
                "script that has the address in its text "
                "must ask __ENV.TARGET instead"
            )
        found: Document = {}
        if self.env:
            found["env"] = [{"name": name, "value": value} for name, value in self.env.items()]
        if self.options:
            found["options"] = self.options
        if self.tags:
            found["tags"] = [{"name": name, "value": value} for name, value in self.tags.items()]
        return found


def _aimed(value: str, host: str) -> str:
    """Return a variable with the server that is measured in place of a host."""
    if value == host:
        return _TARGET_HOST
    url = _URL.match(value)
    if url is None or url[2] != host:
        return value
    address = f"{url[1]}://{_TARGET_HOST}" if url[1].startswith("ws") else _TARGET
    return address + value[url.end() :]


def _arguments(text: str, values: _Values, into: Translation) -> None:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Mistake(f"spec.arguments cannot be read ({error}): {text}") from error
    for flag, value in _flags(words):
        where = f"spec.arguments: --{flag}"
        if flag in ("env", "tag"):
            name, _, content = value.partition("=")
            if flag == "env":
                _variable(name, content, where, values, into)
            else:
                values.tags[name] = content
        elif flag in _OPTIONS:
            _option(_OPTIONS[flag], value, where, values, into)
        elif flag == "stage":
            for stage in value.split(","):
                _stage(stage, where, values, into)
        else:
            why = _FLAGS.get(flag, "write it into the options of the script, if there is one")
            into.left_out.append(f"{where}{f'={value}' if value else ''}: {why}")


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield flags and their values, by their long names."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            yield word, ""
            continue
        flag = name.removeprefix("--")
        if not name.startswith("--"):
            flag = _SHORT.get(name[:2], name.removeprefix("-"))
            if len(name) > 2 and name[:2] in _SHORT:  # -u10, -eA=1
                value, equals = word[2:], "="
        if not equals and flag not in _SWITCHES:
            value = next(rest, "")
        yield flag, value


def _option(name: str, value: Any, where: str, values: _Values, into: Translation) -> None:
    if name == "duration":
        values.options[name] = str(value)
    elif str(value).isdecimal():
        values.options[name] = int(value)
    else:
        into.left_out.append(f"{where}={value}: it is no whole number")


def _stage(text: str, where: str, values: _Values, into: Translation) -> None:
    duration, colon, target = text.strip().partition(":")
    if not colon or not target.isdecimal():
        into.left_out.append(f"{where}={text}: a stage is written 30s:10")
        return
    stages = values.options.setdefault("stages", [])
    stages.append({"duration": duration, "target": int(target)})


def _variable(name: str, value: str, where: str, values: _Values, into: Translation) -> None:
    if name.startswith("K6_"):
        into.left_out.append(
            f"{where} {name}: a setting of k6 itself, which a run has no field for"
        )
    elif _OURS.fullmatch(name):
        why = "Laptime sets it: give it another name in the script"
        into.left_out.append(f"{where} {name}: {why}")
    else:
        values.env[name] = value


def _variables(runner: Document, values: _Values, into: Translation) -> None:
    for one in runner.get("env") or []:
        name, where = str(one.get("name")), "spec.runner.env:"
        if "valueFrom" in one:
            into.left_out.append(
                f"{where} {name}: valueFrom reads what a run must not (Secrets) or does not have; "
                "write a value"
            )
        elif name in _SETTINGS and _SETTINGS[name] in values.options:
            into.left_out.append(f"{where} {name}: spec.arguments say it too, and win in k6")
        elif name in _SETTINGS:
            value = str(one.get("value", ""))
            if name == "K6_STAGES":
                for stage in value.split(","):
                    _stage(stage, f"{where} {name}", values, into)
            else:
                _option(_SETTINGS[name], value, f"{where} {name}", values, into)
        elif name not in values.env:  # flags win in k6
            _variable(name, str(one.get("value", "")), where, values, into)

"""`laptime init`: a run to begin with, made from what there is already."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from laptime.api import KIND, SCENARIO_KIND
from laptime.api.server import HEALTH_PATH_FORM
from laptime.api.service import HEALTH_PATH
from laptime.api.text import plain_lines
from laptime.cli.init.translation import Document, Translation
from laptime.cli.mistakes import Mistake
from laptime.cli.options import program_name

_SERVICE = re.compile("([a-z0-9][-a-z0-9]*):([0-9]+|[a-z][-a-z0-9]*)")
_EXAMPLE_IMAGE = "registry.example/my-server:1.0"
_WHAT = (
    "an OpenAPI 3 document, a HAR file that a browser has recorded, or a manifest with exactly one "
    "TestRun of k6-operator (k6.io)"
)


def init(
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            help="An OpenAPI 3 document, a HAR file, or a manifest with a TestRun of k6-operator; "
            "- reads stdin.",
        ),
    ],
    image: Annotated[
        str | None, typer.Option("--image", help="The server under test, as an image.")
    ] = None,
    service: Annotated[
        str | None,
        typer.Option("--service", help="The server under test, as a Service: NAME:PORT."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Of a HAR file: whose requests, where there are several."),
    ] = None,
    secrets: Annotated[
        bool,
        typer.Option("--with-secrets", help="Of a HAR file: write passwords and tokens out."),
    ] = False,
) -> None:
    """Print a scenario and a run that are made from an API's description, or from a recording.

    What is left out, and what is still to be written, stands in comments before them. Of a TestRun
    of k6-operator the run is printed, and the ConfigMaps beside it.
    """
    from laptime.cli.init.har.translation import is_recording
    from laptime.cli.init.har.translation import translated as from_recording
    from laptime.cli.init.openapi import is_openapi
    from laptime.cli.init.openapi import translated as from_openapi
    from laptime.cli.init.testrun import is_testrun
    from laptime.cli.manifest_file import read_any

    documents = read_any(source)
    first = documents[0] if len(documents) == 1 else None
    if not is_recording(first) and (host or secrets):
        raise Mistake(f"--host and --with-secrets are for HAR files, and {source} is none")
    beside: list[Document] = []
    if is_openapi(first):
        found = from_openapi(first, None if str(source) == "-" else source)
    elif is_recording(first):
        found = from_recording(first, host, keep_secrets=secrets)
    elif sum(map(is_testrun, documents)) == 1:
        found, beside = _from_testrun(documents)
    else:
        raise Mistake(f"{source} is not {_WHAT}: give a file that is one of them")
    if server := _server(image, service, found.health_path):
        found.run["spec"]["servers"] = [server]
        if image is not None:
            found.to_write.append(_of_image(server.get("healthPath", HEALTH_PATH)))
            if _writes(found):
                found.to_write.append(_ROWS_OF_IMAGE)
    elif not found.run["spec"]["servers"]:
        found.run["spec"]["servers"] = [_example(found)]
    _print(found, beside, source)


def _from_testrun(documents: list[Any]) -> tuple[Translation, list[Document]]:
    from laptime.cli.init.testrun import is_testrun, translated

    found = translated(next(filter(is_testrun, documents)))
    beside = []
    for one in documents:
        if isinstance(one, dict) and one.get("kind") == "ConfigMap":
            beside.append(one)
        elif not is_testrun(one):
            kind = one.get("kind", "?") if isinstance(one, dict) else "?"
            found.left_out.append(
                f"the {kind} beside the TestRun: apply it yourself if it is needed"
            )
    return found, beside


def _server(image: str | None, service: str | None, health_path: str | None) -> Document | None:
    """Return the server that the options name."""
    if image is not None and service is not None:
        raise Mistake("--image and --service: one of them is the server, which one?")
    if image is not None:
        own: Document = {"name": "mine", "image": image, "port": 8080}
        known = health_path is not None and re.fullmatch(HEALTH_PATH_FORM, health_path)
        return {**own, "healthPath": health_path} if known else own
    if service is None:
        return None
    matched = _SERVICE.fullmatch(service)
    if matched is None:
        raise Mistake(f"--service {service}: write NAME:PORT, such as shop:8080")
    name, port = matched[1], matched[2]
    target: Document = {"name": name}
    target |= {"port": int(port)} if port.isdecimal() else {"portName": port}
    if health_path is not None:
        target["healthPath"] = health_path
    return {"name": "mine", "service": target}


def _of_image(health_path: str) -> str:
    """Return what nobody knows of an image without looking into it."""
    return (
        f"spec.servers: the port of the image, which must answer GET {health_path} there with 200 "
        "as soon as it serves, or what healthPath says instead (docs/servers.md)"
    )


_ROWS_OF_IMAGE = (
    "spec.data.postgres of the scenario, and topology.postgres of the run, where the image keeps "
    "its rows there: schema, seed, and in reset what takes back before each trial and each "
    "check what requests have made, such as TRUNCATE users (docs/scenarios.md, Data)"
)


def _writes(found: Translation) -> bool:
    requests = found.scenario["spec"]["requests"] if found.scenario is not None else []
    return any(one.get("method", "GET") != "GET" for one in requests)


def _example(found: Translation) -> Document:
    path = f", healthPath: {found.health_path}" if found.health_path else ""
    found.to_write.append(
        f"spec.servers: the servers under test: images that answer GET {HEALTH_PATH}, or what "
        "their healthPath says (docs/servers.md), or Services of the namespace, such as "
        f"{{name: mine, service: {{name: shop, port: 8080{path}}}}}"
    )
    return {"name": "mine", "image": _EXAMPLE_IMAGE, "port": 8080}


def _print(found: Translation, beside: list[Document], source: Path) -> None:
    from laptime.cli.printing import say

    if found.scenario is not None:
        found.to_write += _refused(found.scenario)
    for one in beside:
        say(_yaml(one) + "---")
    lines = [_modeline(SCENARIO_KIND if found.scenario else KIND)]
    if found.scenario is not None:
        name = "the standard input" if str(source) == "-" else source.name
        lines += [
            f"# Made from {name}. Check it: {program_name()} verify FILE",
            f"# An editor completes it by the schemas that `{program_name()} schema .` writes.",
        ]
    for title, said in (
        ("Write before it is run:", found.to_write),
        ("Left out:", found.left_out),
        ("Of the requests:", found.notes),
    ):
        if said:
            lines.append(_comment(title, said))
    say("\n".join(lines))
    if found.scenario is not None:
        say(f"{_yaml(found.scenario)}---\n{_modeline(KIND)}")
    say(_yaml(found.run))


def _refused(scenario: Document) -> list[str]:
    """Return what of a scenario would be refused, which its source has no room for."""
    from laptime.cli.validate_command import valid_scenarios

    try:
        valid_scenarios([scenario], [])
    except Mistake as mistake:
        return [line.strip() for line in str(mistake).splitlines()[1:]]
    return []


def _modeline(kind: str) -> str:
    return f"# yaml-language-server: $schema={kind.lower()}.schema.json"


def _yaml(document: Document) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes every value out, where it stands."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def dumped(*, escaped: bool) -> str:
        return str(
            yaml.dump(
                document, Dumper=Dumper, sort_keys=False, allow_unicode=not escaped, width=100
            )
        )

    text = dumped(escaped=False)
    # What cannot be printed would be replaced on its way out: bodies and scripts stay as they are.
    return text if plain_lines(text) == text else dumped(escaped=True)


def _comment(title: str, lines: list[str]) -> str:
    # What a source says must not leave the comment that it is quoted in.
    quoted = (f"# - {' '.join(line.split())}" for line in lines)
    return "\n".join([f"# {title}", *quoted])

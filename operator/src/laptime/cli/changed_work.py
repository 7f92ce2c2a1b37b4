"""Whether a run does the work that the scenario and the scripts in a file describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laptime.api.status import ConditionType

if TYPE_CHECKING:
    from laptime.cli.manifest_file import Document, Manifest
    from laptime.cli.runs import Run


def other_work(manifest: Manifest, run: Run) -> str | None:
    """Return what a run has to do with the scenario and the scripts in its file, if that matters.

    None: it is the same work, or that cannot be told from the file.
    """
    said = "than it was measured with" if run.over else "than it began with"
    scripts = _other_scripts(manifest, run)
    if scripts:
        return f"ConfigMap {', '.join(scripts)} of the file has another script {said}."
    name = run.spec.scenario if run.spec is not None else None
    written = [one for one in manifest.scenarios if one["metadata"]["name"] == name]
    if not written:
        return None
    began_with = run.status.scenario_hash
    if began_with is not None:
        now = _hash(written[0], manifest)
        if now in (None, began_with):
            return None
        return f"The scenario in the file is another one {said}."
    ended = run.status.condition(ConditionType.SUCCEEDED)
    if ended is None or not ended.reason.startswith("Scenario"):
        return None
    said = f"It ended before it began ({ended.reason})"
    return f"{said}; --again begins with the scenario in the file."


def same_scenario(there: Document, wanted: Document) -> bool:
    """Whether a scenario of the cluster has the spec of one in a file, however that is written."""
    from laptime.cli.own_schemas import as_taken, scenario_schema
    from laptime.cli.schema_rules import with_defaults

    schema = scenario_schema()
    one, other = (
        _as_stored(with_defaults(schema, as_taken({"spec": document.get("spec")}, schema)))
        for document in (there, wanted)
    )
    return bool(one["spec"] == other["spec"])


def other_run(manifest: Manifest, run: Run) -> str | None:
    """Return what is another than in its file of a run that was applied as it stands there.

    None: nothing, or that cannot be told.
    """
    fields = _other_fields(manifest, run)
    if fields:
        return f"The run in the cluster has another {', '.join(fields)} than the file."
    return other_work(manifest, run)


def _other_fields(manifest: Manifest, run: Run) -> list[str]:
    """Return the fields of a run's spec that are not as in its file, although it was applied.

    What another program applied, kubectl for one, an apply of a file without it leaves where it is,
    and so the API server sees no change.
    """
    from pydantic import ValidationError

    from laptime.api.spec import CHANGEABLE, BenchmarkRunSpec
    from laptime.cli.own_schemas import as_taken

    if run.spec is None:
        return []
    try:
        wanted = BenchmarkRunSpec.model_validate(as_taken(manifest.run)["spec"]).with_control()
    except ValidationError:
        # The API server took it, so a newer version knows more of it.
        return []
    found = _differing(run.spec.to_wire(), wanted.to_wire())
    return [one for one in found if one.partition(".")[0] not in CHANGEABLE]


def _differing(there: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    found = []
    for key, one in there.items():
        other = wanted.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            found += [f"{key}.{below}" for below in _differing(one, other)]
        elif one != other:
            found.append(key)
    return found


def _other_scripts(manifest: Manifest, run: Run) -> list[str]:
    from laptime.manifests.kept_scripts import script_hash

    now = {one["metadata"]["name"]: script_hash(one) for one in manifest.config_maps}
    began_with = {one.config_map: one.hash for one in run.status.scripts or []}
    return [name for name, its in began_with.items() if now.get(name, its) != its]


def _hash(document: Document, manifest: Manifest) -> str | None:
    from laptime.catalog import config_maps_of, document_spec, scenario_of
    from laptime.cli.own_schemas import as_taken, scenario_schema

    texts = {
        (one["metadata"]["name"], key): text
        for one in manifest.config_maps
        for key, text in (one.get("data") or {}).items()
    }
    taken = _as_stored(as_taken(document, scenario_schema()))
    try:
        wanted = config_maps_of(document_spec(taken))
        if any((one.name, one.key) not in texts for one in wanted):
            return None
        return scenario_of(taken, texts).hash
    except ValueError:
        # The API server took it, so a newer version knows more of it.
        return None


def _as_stored(node: Any) -> Any:
    """Return a document as it comes back from the API server, where 1.0 is 1."""
    if isinstance(node, dict):
        return {key: _as_stored(one) for key, one in node.items()}
    if isinstance(node, list):
        return [_as_stored(one) for one in node]
    return int(node) if isinstance(node, float) and node.is_integer() else node

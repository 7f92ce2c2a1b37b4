"""The base of every model: frozen, camelCase on the wire, unknown fields refused."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """A frozen model whose fields are snake_case in Python and camelCase in YAML."""

    # What cannot be read may be secret, such as the rows of a feeder, and errors end in a status.
    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON-ready form: camelCase keys, fields that are None left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def significant(value: float) -> float:
    """Return a number to six digits: what a reading can know, and all that is stored of it."""
    return float(f"{value:.6g}")


Reading = Annotated[float, AfterValidator(significant)]
"""What was read of a clock or a counter while something was measured."""


class TolerantModel(Model):
    """A model read back from the cluster: fields of a newer version are ignored, not refused."""

    model_config = ConfigDict(extra="ignore")


def rule(expression: str, message: str, field_path: str | None = None) -> dict[str, str]:
    """Return one CEL rule of the CRD: the expression that must hold and what to write instead."""
    cel = {"rule": expression, "message": message}
    if field_path:
        cel["fieldPath"] = field_path
    return cel


def rules(*items: dict[str, str], **extra: Any) -> dict[str, Any]:
    """Return the `json_schema_extra` that carries CEL rules and other CRD extensions."""
    return {"x-kubernetes-validations": list(items), **extra}


BY_NAME: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
"""The `json_schema_extra` of a list whose items are told apart by their names."""

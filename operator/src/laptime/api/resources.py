"""CPU and memory as users write them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema

from laptime.api.base import Model, rule, rules

_QUANTITY = "([0-9]+(?:[.][0-9]+)?)(m|Ki|Mi|Gi|k|M|G)?"
_FACTORS = {
    None: 1.0,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
}

Quantity = Annotated[
    str,
    Field(coerce_numbers_to_str=True),
    WithJsonSchema(
        rules(
            rule(
                f"string(self).matches('^{_QUANTITY}$') && "
                "quantity(string(self)).isGreaterThan(quantity('0'))",
                "must be a Kubernetes quantity above zero, such as 500m or 2 (cpu), "
                "256Mi or 1Gi (memory)",
            ),
            **{"x-kubernetes-int-or-string": True, "maxLength": 16},
        )
    ),
]


CPU_RULE = rule(
    "!has(self.cpu) || !isQuantity(string(self.cpu)) || "
    "!quantity(string(self.cpu)).isGreaterThan(quantity('1024'))",
    "cpu must be at most 1024 cores: did you write a unit of memory?",
    ".cpu",
)


class Resources(Model):
    """CPU and memory of one pod; each one set is both its request and its limit."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            CPU_RULE,
            rule(
                "!has(self.memory) || !isQuantity(string(self.memory)) || "
                "!quantity(string(self.memory)).isLessThan(quantity('4Mi'))",
                "memory must be at least 4Mi: did you leave out the unit (Mi, Gi)?",
                ".memory",
            ),
        )
    )
    cpu: Quantity | None = Field(None, description="CPU cores, such as 500m or 2.")
    memory: Quantity | None = Field(None, description="Memory, such as 256Mi or 1Gi.")


def quantity(text: str) -> float:
    """Return the number that a Kubernetes quantity such as `500m` or `256Mi` stands for.

    Raises:
        ValueError: the text is not a quantity.
    """
    match = re.fullmatch(_QUANTITY, text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity: write for example 500m, 2 or 256Mi")
    return float(match[1]) * _FACTORS[match[2]]

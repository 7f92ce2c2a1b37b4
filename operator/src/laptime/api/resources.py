"""CPU and memory as users write them."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema

from laptime.api.base import Model, rule, rules

_QUANTITY = "([0-9]+(?:[.][0-9]+)?)(m|Ki|Mi|Gi|k|M|G)?"
_FACTORS: dict[str | None, int | Fraction] = {
    None: 1,
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
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

    What is the same for Kubernetes is the same number, however it is written.

    Raises:
        ValueError: the text is not a quantity.
    """
    return thousandths(text) / 1000


def thousandths(text: str) -> int:
    """Return how many thousandths a quantity has, rounded up, as the API server keeps it.

    Raises:
        ValueError: the text is not a quantity.
    """
    match = re.fullmatch(_QUANTITY, text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity: write for example 500m, 2 or 256Mi")
    # Not by floats: of 700m they make another number than of 0.7.
    return math.ceil(1000 * Fraction(match[1]) * _FACTORS[match[2]])

"""What two nodes exchange, measured beside the trials."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from laptime.api.base import TolerantModel, significant

MOST_PATHS = 8
"""So many pairs of nodes of a run are measured: each takes some seconds."""

# The bound before the validator: behind it pydantic writes one that no API server knows.
_Measured = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(significant)]


class NodePath(TolerantModel):
    """The network from a node with a generator to one with a server, while nothing else ran."""

    generator_node: str = Field(description="The node that asked.")
    server_node: str = Field(description="The node that it asked.")
    to_server_bytes_per_second: _Measured | None = Field(
        None,
        description="What arrived of requests' way, in at most 1 s or 256 MiB, by eight "
        "connections together.",
    )
    from_server_bytes_per_second: _Measured | None = Field(
        None, description="The same of answers' way."
    )
    to_server_at_least: bool = Field(
        False,
        description="Whether the CPUs of the two pods may have been the limit: then the network "
        "may carry more.",
    )
    from_server_at_least: bool = Field(False, description="The same of answers' way.")
    round_trip_seconds: _Measured | None = Field(
        None, description="The shortest time until an answer of one byte was there."
    )
    message: str | None = Field(None, description="Why it could not be measured.")

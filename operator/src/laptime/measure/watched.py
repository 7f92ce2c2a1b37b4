"""A trial's result together with what was read of its pods: validity and cause. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from laptime.api.doubts import Said
from laptime.api.node_path import NodePath
from laptime.api.results import TrialReadings, TrialResult, Validity
from laptime.api.side_services import SideService
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Request
from laptime.measure.by_design import by_design
from laptime.measure.causes import limited_by
from laptime.measure.isolation import trial_isolation
from laptime.measure.statements import expected_statements, most_in_flight
from laptime.measure.validity import Judgement, judge_server, judge_statements, judge_usage


def watched_result(
    result: TrialResult,
    readings: TrialReadings | None,
    spec: BenchmarkRunSpec,
    requests: Sequence[Request],
    services: Sequence[SideService] = (),
    paths: Sequence[NodePath] = (),
) -> TrialResult:
    """Return a measured result with usage, tiers, isolation, cause, and doubts that follow.

    Without readings only the cause is added, as far as the generator alone can tell it. Readings
    that are incomplete make no throughput doubtful: they concern usage and cause, which say so.
    """
    if result.figures is None:
        return result
    usage = readings.usage if readings else None
    tiers = readings.tiers if readings else None
    load, server = spec.load(result.load), spec.server(result.server)
    topology = spec.topology_of(server)
    judgement = Judgement(result.validity, tuple(map(Said, result.validity_reasons)))
    if result.validity is not Validity.INVALID:
        judgement = judgement.and_also(judge_usage(usage)).and_also(judge_server(server))
        counted = tiers.database.statements if tiers and tiers.database else None
        if (
            result.statements is None
            and result.figures.saturation is None
            and counted is not None
            and topology.postgres is not None
        ):
            right = result.figures.requests - result.figures.errors
            expected = expected_statements(requests, result.endpoints, load)
            # Asked for once a second: of a load that begins or ends in between a part is missing.
            around = most_in_flight(load) + math.ceil(result.figures.requests_per_second)
            # Begin and commit are in this count too: it can show too few, not too many.
            fewer = judge_statements(counted, result.figures.requests, right, expected, around)
            if fewer.validity is Validity.INVALID:
                judgement = judgement.and_also(fewer)
    return result.model_copy(
        update={
            "usage": usage,
            "tiers": tiers,
            "isolation": trial_isolation(
                usage, {node for nodes in result.nodes.values() for node in nodes}
            ),
            "seconds_missing": readings.seconds_missing if readings else None,
            "limited_by": limited_by(
                load,
                server,
                topology,
                result.figures,
                usage,
                tiers,
                result.generator_share,
                by_design(server, topology, load, result.endpoints, requests),
                services,
                paths,
            ),
            "validity": judgement.validity,
            "validity_reasons": list(judgement.reasons),
        }
    )

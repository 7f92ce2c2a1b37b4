"""`make fuzz`: thousands of specs from the CRD's schema, through an API server and to their ends.

Each is refused with a message, by the API server (a dry run, where there is one) as by
`laptime validate`, or accepted by both and run to its end in the simulation. The seed is that of
the commit.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from laptime.api import GROUP, PLURAL, VERSION
from tests.fuzz.judge import Case, Outcome, case, judge, manifest_of

OUT = Path(__file__).resolve().parents[3] / "out" / "fuzz"
_LONGEST_SECONDS = 900.0
"""Of all cases none may take longer."""


def main() -> int:
    """Run all cases; return the exit code."""
    options = _options()
    began = time.monotonic()
    print(f"seed {options.seed}, {options.specs} specs", flush=True)
    said = _asked(options) if options.kubeconfig else {}
    where = "an API server and the simulation" if said else "the simulation (no API server here)"
    problems: dict[int, str] = {}
    outcomes: list[Outcome] = []
    with multiprocessing.Pool(options.jobs) as pool:
        pending = pool.imap_unordered(
            _judge_number, ((options.seed, number) for number in range(options.specs))
        )
        for _ in range(options.specs):
            try:
                outcome = pending.next(timeout=_LONGEST_SECONDS)
            except multiprocessing.TimeoutError:
                left = set(range(options.specs)) - {one.number for one in outcomes}
                problems[min(left)] = f"nothing for {_LONGEST_SECONDS:g} s; not over: {left}"
                pool.terminate()
                break
            outcomes.append(outcome)
            if outcome.problem:
                problems[outcome.number] = outcome.problem
            elif outcome.number in said and bool(said[outcome.number]) != bool(outcome.refused):
                problems[outcome.number] = (
                    f"the API server says {said[outcome.number] or 'nothing'!r}, "
                    f"`laptime validate` {outcome.refused or 'nothing'!r}"
                )
            if len(outcomes) % 200 == 0:
                print(f"{len(outcomes)} of {options.specs}, {len(problems)} problems", flush=True)
    for number, problem in sorted(problems.items()):
        _keep(case(options.seed, number), problem)
    _report(outcomes, problems, where, time.monotonic() - began)
    return 1 if problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", type=int, default=2000)
    parser.add_argument("--seed", default=_commit())
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--kubeconfig", default=os.environ.get("KUBECONFIG", ""))
    return parser.parse_args()


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"


def _judge_number(of: tuple[str, int]) -> Outcome:
    # A world without faults of its own has much to say of the others.
    logging.disable(logging.CRITICAL)
    return judge(case(*of))


def _asked(options: argparse.Namespace) -> dict[int, str]:
    """Return what the API server says to each spec; empty where it would take it."""
    configuration = client.Configuration()
    config.load_kube_config(options.kubeconfig, client_configuration=configuration)
    custom = client.CustomObjectsApi(client.ApiClient(configuration))

    def ask(number: int) -> tuple[int, str]:
        try:
            custom.create_namespaced_custom_object(
                *(GROUP, VERSION, "default", PLURAL, manifest_of(case(options.seed, number))),
                dry_run="All",
                field_validation="Strict",
            )
        except ApiException as error:
            if error.status not in (400, 422):
                raise
            return number, str(error.body)[:500] or "refused without a word"
        return number, ""

    with ThreadPoolExecutor(4) as threads:
        found = dict(threads.map(ask, range(options.specs)))
    refused = sum(map(bool, found.values()))
    print(f"the API server takes {len(found) - refused} and refuses {refused}", flush=True)
    return found


def _keep(one: Case, problem: str) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(manifest_of(one), sort_keys=False, allow_unicode=True)
    commented = "".join(f"# {line}\n" for line in problem.splitlines())
    (OUT / f"{one.number}.yaml").write_text(commented + text, encoding="utf-8")
    print(f"\nspec {one.number} ({OUT / f'{one.number}.yaml'}):\n{problem}", file=sys.stderr)


def _report(outcomes: list[Outcome], problems: dict[int, str], where: str, seconds: float) -> None:
    for line in _lines(outcomes):
        print(line)
    slowest = max(outcomes, key=lambda one: one.seconds)
    print(f"slowest: spec {slowest.number} with {slowest.trials} trials, {slowest.seconds:.1f} s")
    print(f"{len(outcomes)} specs through {where} in {seconds:.0f} s: {len(problems)} problems")


def _lines(outcomes: list[Outcome]) -> Iterator[str]:
    refused = [one for one in outcomes if one.refused]
    yield f"refused with a message: {len(refused)}"
    ended = Counter(one.state for one in outcomes if one.state)
    for state, count in sorted(ended.items()):
        trials = [one.trials for one in outcomes if one.state == state]
        yield f"{state}: {count}, {sum(trials)} trials, at most {max(trials)}"


if __name__ == "__main__":
    sys.exit(main())

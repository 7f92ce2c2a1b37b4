"""Every way in which a script can be wrong ends soon, in k6's own words, and hurts nothing else."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from .harness import AXUM, POSTGRES_ALONE, Cluster, over, run_manifest
from .test_scripts import SCRIPTS

FILES = sorted((SCRIPTS / "bad").glob("*.js"))
END = re.compile(
    r"^// exit code: (\d+)\n(?:// environment: .+\n)?(?:// says: (.+)\n)?\Z", re.MULTILINE
)
SAID = {
    # Of two lines that k6 says the one with the script's own words.
    "fail": r"test marked as failed: wrong",
    "urls": r"no right answer, mostly status \(3000 of 3000 requests\)",
    "tags": r"there are more parts of metrics by scenarios and tags than are kept",
    # What a run cannot set is what it is by itself.
    "an-iteration-that-goes-on": r"still running 30 s after the end of its duration of 2 s",
    "memory": r"the script used \d+ MiB of memory, and 486 MiB are nearly all of its pod's limit",
    # What is not in the words of k6 is in the reasons of the row.
    "an-iteration": r"1 of 1,?000 iterations ended with an exception: SyntaxError.*own\.js:4:",
    "every-iteration-differently": r"iterations ended with an exception",
}
LONGEST_SECONDS = 30.0
"""From when it shows to the end of the trial."""
SHOWS_AFTER_SECONDS = {
    # Of CPU time, which it has to itself: so long nobody can tell it from a long file.
    "an-endless-start": 25.0,
    "an-iteration-that-goes-on": 2.0 + 30.0,
    # A Job, its pod, and what it waits for.
    "": 8.0,
}
GOOD = """
import http from 'k6/http';
import { check } from 'k6';
export const options = { vus: 2, iterations: 200 };
export default function () {
  const answer = http.get(`${__ENV.TARGET}/`, { tags: { name: 'list' } });
  check(answer, { 'status is 200': (a) => a.status === 200 });
}
"""
HALVES = (FILES[::2], FILES[1::2])


def load(cluster: Cluster, name: str, file: Path) -> dict[str, Any]:
    """Return a load by a script that is called `own.js`; its ConfigMap is made."""
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    cluster.apply({**config_map, "data": {"own.js": file.read_text()}})
    duration = "2s" if file.stem == "an-iteration-that-goes-on" else "90s"
    script = {"configMap": name, "key": "own.js", "duration": duration, "warmup": "0s"}
    return {"name": name, "script": script}


def expected(name: str) -> tuple[str, str]:
    """Return the exit code of k6, and what is said of a script, as a regular expression."""
    end = END.search((SCRIPTS / "bad" / f"{name}.js").read_text())
    assert end is not None, f"{name}.js does not end with `// exit code: …`"
    says = SAID.get(name) or re.sub(r"^(ScriptFailed|GeneratorTimedOut)\.\*", "", end[2] or "")
    assert says, f"write what is said of {name}.js: `// says: …` at its end, or its words in SAID"
    return end[1], says


@pytest.mark.parametrize("files", HALVES, ids=["one half", "the other half"])
def test_each_bad_script_ends_in_its_own_words_and_hurts_nothing(
    cluster: Cluster, files: list[Path], tmp_path: Path
) -> None:
    assert len(FILES) >= 23
    loads = [load(cluster, f"bad-{n}", file) for n, file in enumerate(files)]
    names = {f"bad-{n}": file.stem for n, file in enumerate(files)}
    expected_of = {name: expected(name) for name in names.values()}
    good_file = tmp_path / "good.js"
    good_file.write_text(GOOD)
    loads.append(load(cluster, "good", good_file))
    run = cluster.apply(
        run_manifest(
            "bad",
            [AXUM],
            loads=loads,
            topology=POSTGRES_ALONE,
            repetitions=1,
            generator={"resources": {"memory": "512Mi"}},
        )
    )
    steps: dict[str, float] = {}

    def is_over(status: dict[str, Any]) -> bool:
        steps.setdefault(status.get("currentTrial") or "", time.monotonic())
        return over(status)

    status = cluster.wait(run, "its end", is_over, 600)
    steps["end"] = time.monotonic()
    trials = [name for name in steps if name not in ("", "end")]
    began = [steps[name] for name in (*trials, "end")]
    seconds = {trial: began[i + 1] - began[i] for i, trial in enumerate(trials)}
    rows = {row["load"]: row for row in status["results"]}
    results = cluster.documents(run)
    wrong = []
    for trial, result in results.items():
        name = names.get(result["load"], "good")
        took = seconds[trial]
        if took > LONGEST_SECONDS + SHOWS_AFTER_SECONDS.get(name, SHOWS_AFTER_SECONDS[""]):
            wrong.append(f"{name}: it took {took:.0f} s")
        if name == "good":
            continue
        row = rows[result["load"]]
        exit_code, says = expected_of[name]
        if exit_code == "0":
            said = " ".join((*row["validityReasons"], *(row["script"].get("warnings") or ())))
            outcome, ends = result["outcome"], "Measured"
        else:
            said, outcome = result["message"], f"{result['outcome']} {result['reason']}"
            reason = "GeneratorTimedOut" if exit_code == "102" else "ScriptFailed"
            ends = f"Failed {reason}"
        if outcome != ends or not re.search(says, said):
            wrong.append(f"{name}: {outcome} instead of {ends}, {says!r} in {said!r}")
        if result.get("attempt", 1) != 1:
            wrong.append(f"{name}: it was tried again")
        print(f"{name}: {took:.0f} s, {outcome}: {said}")
    assert not wrong, "\n".join(wrong)
    assert len(results) == len(loads)
    good = rows["good"]
    assert (good["requests"], good["errors"]) == (200, 0), json.dumps(good, indent=1)
    assert good["script"]["checksFailed"] == 0
    assert good["validity"] != "invalid", good

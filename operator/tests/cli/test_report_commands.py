"""report, compare: from an API server to a file."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.api.placement import RunPlacement
from laptime.api.results import RowState, TrialResult, Validity
from laptime.api.spec import BenchmarkRunSpec
from laptime.manifests import archive
from laptime.manifests.archive import archive_config_maps
from laptime.report import Report, to_json, to_markdown
from laptime.report.archive import pack
from laptime.report.contents import End
from laptime.report.table import COLUMNS
from tests import version_1
from tests.manifests.runs import context
from tests.report.html_tree import parse
from tests.report.sample import SPEC, recorded

Laptime = Callable[..., tuple[int, str, str]]
REPORT, PAYLOADS = recorded()
SMALL = recorded(small=True)


def silenced(trial: TrialResult) -> TrialResult:
    """Return a trial of which no request had a right answer."""
    assert trial.figures is not None
    nothing = {"errors": trial.figures.requests, "requests_per_second": 0.0, "latency": None}
    figures = trial.figures.model_copy(update=nothing)
    return trial.model_copy(update={"figures": figures, "validity": Validity.INVALID})


def store(
    fake: Any,
    name: str = "demo",
    trials: list[TrialResult] | None = None,
    recording: tuple[Report, dict[str, str]] = (REPORT, PAYLOADS),
) -> None:
    """Put a finished run with all its results into the cluster."""
    report, payloads = recording
    report = replace(report, name=name, trials=trials or report.trials)
    run = fake.put(
        f"/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/{name}",
        {
            "spec": report.spec.to_wire(),
            "status": {
                "state": "Succeeded",
                "resultsConfigMap": f"{name}-results",
                "results": [row.to_wire() for row in report.summary.rows],
                "servers": [{"name": "axum", "state": "Verified", "image": "axum@sha256:0123"}],
            },
        },
    )
    config_maps = "/api/v1/namespaces/team/configmaps"
    files = {"results.json": to_json(report)}
    fake.put(f"{config_maps}/{name}-results", {"data": files})
    for trial, payload in payloads.items():
        # Whatever its own name had to be, and whatever a run of this name before left.
        labels = {
            "laptime.dev/run-uid": run["metadata"]["uid"],
            "laptime.dev/component": "result",
            "laptime.dev/trial": trial,
        }
        fake.put(
            f"{config_maps}/{trial}-0a1b2c3d",
            {"metadata": {"labels": labels}, "data": {"generator.b64": payload}},
        )
        earlier = {**labels, "laptime.dev/run-uid": "earlier"}
        fake.put(
            f"{config_maps}/{trial}-of-an-earlier-run",
            {"metadata": {"labels": earlier}, "data": {"generator.b64": "no payload"}},
        )


def store_profiles(fake: Any) -> None:
    """Put a profile that was taken and one that was not beside the results."""
    uid = fake.objects["/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/demo"]["metadata"][
        "uid"
    ]
    labels = {"laptime.dev/run-uid": uid, "laptime.dev/component": "profile"}
    config_maps = "/api/v1/namespaces/team/configmaps"
    fake.put(
        f"{config_maps}/demo-flame-axum",
        {
            "metadata": {
                "labels": {**labels, "laptime.dev/server": "axum", "laptime.dev/load": "closed"}
            },
            "data": {
                "stacks.folded": "main;list 3\nmain 1\n",
                # Somebody else was here.
                "flamegraph.svg": "<svg><script>steal()</script></svg>",
            },
        },
    )
    fake.put(
        f"{config_maps}/demo-flame-mine",
        {
            "metadata": {
                "labels": {**labels, "laptime.dev/server": "mine", "laptime.dev/load": "closed"},
                "annotations": {
                    "laptime.dev/profile-problem": "ProfileNotOffered: nothing listens"
                },
            }
        },
    )


def changed(factor: float) -> list[TrialResult]:
    """Return the trials with axum that much faster, or slower."""
    out = []
    for trial in REPORT.trials:
        figures = trial.figures
        if trial.server == "axum" and figures is not None:
            update: dict[str, Any] = {"requests_per_second": figures.requests_per_second * factor}
            if (found := figures.saturation) is not None:
                rates = ("low_rate", "high_rate", "breaking_rate")
                known = {name: getattr(found, name) for name in rates if getattr(found, name)}
                searched = {name: rate * factor for name, rate in known.items()}
                update["saturation"] = found.model_copy(update=searched)
            trial = trial.model_copy(update={"figures": figures.model_copy(update=update)})
        out.append(trial)
    return out


def with_images(trials: Iterable[TrialResult], axum: str, factor: float = 1.0) -> list[TrialResult]:
    """Return the trials with the images of servers, on a machine that is so many times as fast."""
    out = []
    for trial in trials:
        assert trial.figures is not None
        image = axum if trial.server == "axum" else f"{trial.server}@sha256:1"
        rate = trial.figures.requests_per_second * factor
        figures = trial.figures.model_copy(update={"requests_per_second": rate})
        out.append(trial.model_copy(update={"images": {"server": image}, "figures": figures}))
    return out


def two_files(
    folder: Path, before: list[TrialResult], after: list[TrialResult]
) -> tuple[Path, Path]:
    """Return the results of two runs with these trials."""
    files = folder / "before.json", folder / "after.json"
    for file, trials in zip(files, (before, after), strict=True):
        file.write_text(to_json(replace(REPORT, trials=trials)))
    return files


IN_NO_INTERVAL = (
    "What the machine did between the two runs is in no interval: measure both versions in one "
    "run, or add to both runs a server that stays the same."
)


class TestReport:
    def test_it_is_a_page_beside_one_by_default(
        self,
        laptime: Laptime,
        fake: Any,
        kubeconfig: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        store(fake)
        monkeypatch.chdir(tmp_path)
        code, out, err = laptime("report", "demo", "--kubeconfig", kubeconfig)
        assert (code, out, err) == (0, "", "Wrote demo.html\n")
        page = parse((tmp_path / "demo.html").read_text())
        # All pages of the list of trials were read: every curve is there.
        assert len(page.all("svg")) == 38
        environment = page.by_id("environment").text
        assert "axum@sha256:0123" in environment
        assert "v1.34.1" in environment
        # As a shell does with what is there.
        _, _, err = laptime("report", "demo", "--kubeconfig", kubeconfig)
        assert err == "Replaced demo.html\n"

    def test_profiles_are_drawn_anew_from_their_stacks(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path
    ) -> None:
        store(fake, recording=SMALL)
        store_profiles(fake)
        page, folder = tmp_path / "a.html", tmp_path / "flames"
        code, _, err = laptime(
            *("report", "demo", "-f", page, "--profiles", folder, "--kubeconfig", kubeconfig)
        )
        assert code == 0
        assert "No profile of mine: ProfileNotOffered: nothing listens" in err
        assert [file.name for file in folder.iterdir()] == ["demo-axum.svg"]
        picture = (folder / "demo-axum.svg").read_text()
        assert "list (3 samples, 75.0 %)" in picture
        profiles = parse(page.read_text()).by_id("profiles")
        assert "list (3 samples, 75.0 %)" in profiles.text
        assert "ProfileNotOffered: nothing listens" in profiles.text
        assert "steal()" not in picture + page.read_text()

    def test_a_run_without_profiles_has_none_to_write(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path
    ) -> None:
        store(fake)
        code, _, err = laptime(
            *("report", "demo", "--profiles", tmp_path, "--kubeconfig", kubeconfig)
        )
        assert code == 1
        assert "write profile: true at a server of its spec" in err

    def test_the_suffix_of_the_file_says_what_it_is(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path
    ) -> None:
        store(fake, recording=SMALL)
        for name in ("a.html", "a.md", "a.json", "a.csv"):
            code, _, _ = laptime(
                "report", "demo", "-f", tmp_path / name, "--kubeconfig", kubeconfig
            )
            assert code == 0
        assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
        assert (tmp_path / "a.md").read_text() == to_markdown(SMALL[0])
        assert (tmp_path / "a.json").read_text() == to_json(SMALL[0])
        lines = list(csv.DictReader((tmp_path / "a.csv").open(newline="")))
        assert [line["server"] for line in lines[:2]] == ["fastapi", "fastapi-async"]

    def test_a_csv_has_its_columns_and_empty_cells_on_the_screen_as_in_a_file(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path
    ) -> None:
        store(fake, recording=SMALL)
        arguments = ("report", "demo", "--kubeconfig", kubeconfig)
        laptime(*arguments, "-f", tmp_path / "a.csv")
        _, out, _ = laptime(*arguments, "-o", "csv")
        with (tmp_path / "a.csv").open(newline="") as file:
            written = file.read()
        assert written == out
        lines = csv.DictReader(io.StringIO(out, newline=""))
        reasons = [line["validity_reasons"] for line in lines]
        assert lines.fieldnames == list(COLUMNS)
        assert reasons == ["; ".join(row.validity_reasons) for row in SMALL[0].summary.rows]
        assert "" in reasons

    def test_a_dash_is_the_screen(self, laptime: Laptime, fake: Any, kubeconfig: Path) -> None:
        store(fake, recording=SMALL)
        code, out, _ = laptime("report", "demo", "-f", "-", "--kubeconfig", kubeconfig)
        assert code == 0
        assert out.startswith("<!DOCTYPE html>")

    def test_a_table_can_be_had_while_it_goes_on(
        self, laptime: Laptime, fake: Any, kubeconfig: Path
    ) -> None:
        store(fake)
        code, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
        assert code == 0
        assert "requests/s" in out

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("-f", "report.pdf"), "Give it the suffix .html, .htm, .md, .json, .csv"),
            (("-o", "table", "-f", "a.txt"), "A table is for the screen"),
            (("-f", "nowhere/a.html"), "Cannot write nowhere/a.html: No such file or directory"),
        ],
    )
    def test_mistakes_are_said(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, arguments: Any, said: str
    ) -> None:
        store(fake, recording=SMALL)
        code, _, err = laptime("report", "demo", *arguments, "--kubeconfig", kubeconfig)
        assert code == 1
        assert said in err

    def test_a_run_that_only_verified_has_nothing_to_report(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path
    ) -> None:
        store(fake, recording=SMALL)
        (path,) = (one for one in fake.objects if "/benchmarkruns/" in one)
        fake.objects[path]["spec"]["verifyOnly"] = True
        code, _, err = laptime(
            "report", "demo", "--kubeconfig", kubeconfig, "-f", tmp_path / "demo.html"
        )
        assert code == 1
        assert "only verified its servers" in err
        assert "report demo --output table --stored FOLDER" in err

    def test_a_run_that_ended_without_a_report_is_not_waited_for(
        self, laptime: Laptime, fake: Any, kubeconfig: Path
    ) -> None:
        store(fake, recording=SMALL)
        (path,) = (one for one in fake.objects if "/benchmarkruns/" in one)
        ended = {"type": "Succeeded", "status": "False", "lastTransitionTime": "x"}
        why = {"reason": "ScenarioNotFound", "message": "there is no scenario user"}
        status = {"state": "Failed", "conditions": [ended | why]}
        fake.objects[path]["status"] = status
        code, _, err = laptime("report", "demo", "--kubeconfig", kubeconfig)
        assert code == 1
        assert (
            "demo is over (Failed) and has no report: ScenarioNotFound: there is no scenario user\n"
        ) in err
        assert "report demo --output table" in err
        status["state"] = "Running"
        _, _, err = laptime("report", "demo", "--kubeconfig", kubeconfig)
        assert "has no report yet (state Running): it is written when the run is over." in err

    def test_results_of_a_newer_version_are_refused(
        self, laptime: Laptime, fake: Any, kubeconfig: Path
    ) -> None:
        store(fake)
        stored = fake.objects["/api/v1/namespaces/team/configmaps/demo-results"]
        stored["data"]["results.json"] = '{"schemaVersion": 9}'
        code, _, err = laptime("report", "demo", "--kubeconfig", kubeconfig)
        assert code == 1
        assert "Cannot read the results of demo: it has schemaVersion 9" in err

    def test_without_the_extra_it_says_what_to_install(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store(fake)
        for name in [name for name in sys.modules if name.startswith("laptime.report.html")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        code, _, err = laptime("report", "demo", "--kubeconfig", kubeconfig)
        assert code == 1
        assert "\n  pip install './operator[cli]' (in a checkout of Laptime)\n" in err
        assert "--output markdown" in err


def fold(fake: Any, name: str = "demo") -> None:
    """Have everything that a run has stored in its archive, and nowhere else."""
    config_maps = "/api/v1/namespaces/team/configmaps"
    run = fake.objects[f"/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/{name}"]
    uid = run["metadata"]["uid"]
    single = {
        path: one
        for path, one in fake.objects.items()
        if (one["metadata"].get("labels") or {}).get("laptime.dev/run-uid") == uid
    }
    plain = fake.objects[f"{config_maps}/{name}-results"]
    head, parts = archive_config_maps(context(), pack(plain["data"], single.values()))
    for path in single:
        del fake.objects[path]
    plain.pop("data")
    plain |= {"binaryData": head["binaryData"]}
    plain["metadata"] |= {key: head["metadata"][key] for key in ("annotations", "labels")}
    for part in parts:
        fake.put(f"{config_maps}/{part['metadata']['name']}", part)


def document_of(payload: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(payload)))["generator"]


class TestFolded:
    """What a command says does not depend on how the run is stored."""

    @pytest.mark.parametrize("form", ["html", "markdown", "json", "csv"])
    def test_a_report_is_the_same(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path, form: str
    ) -> None:
        store(fake, recording=SMALL)
        store_profiles(fake)
        said = []
        for number in range(2):
            arguments = ("-o", form, "-f", "-", "--profiles", tmp_path / f"{number}")
            code, out, _ = laptime("report", "demo", *arguments, "--kubeconfig", kubeconfig)
            assert code == 0
            said.append((out, (tmp_path / f"{number}" / "demo-axum.svg").read_text()))
            fold(fake) if number == 0 else None
        assert said[0] == said[1]
        assert not [path for path in fake.objects if "-0a1b2c3d" in path]

    def test_a_folded_run_is_compared_with_one_that_is_not(
        self, laptime: Laptime, fake: Any, kubeconfig: Path
    ) -> None:
        store(fake)
        store(fake, "again", changed(0.9))
        fold(fake, "again")
        code, out, _ = laptime("compare", "demo", "again", "--kubeconfig", kubeconfig)
        assert code == 0
        assert "Worse: axum (requests/s, closed)" in out

    def test_a_large_one_has_parts(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archive, "MAX_PART_BYTES", 10_000)
        store(fake)
        fold(fake)
        assert len([path for path in fake.objects if "-results-" in path]) > 3
        code, out, _ = laptime("report", "demo", "-o", "json", "--kubeconfig", kubeconfig)
        assert (code, out) == (0, to_json(REPORT))
        (path, *_) = (path for path in fake.objects if "-results-" in path)
        fake.objects[path]["binaryData"] = {"archive.xz": "AAAA"}
        code, _, err = laptime("report", "demo", "-o", "json", "--kubeconfig", kubeconfig)
        assert code == 1
        assert "a part of the archive, was changed" in err

    def test_what_version_1_left_is_reported(
        self, laptime: Laptime, fake: Any, kubeconfig: Path
    ) -> None:
        run = version_1.run()
        runs = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns"
        uid = fake.put(f"{runs}/first", run)["metadata"]["uid"]
        for one in (*version_1.single(), version_1.files()):
            one["metadata"]["labels"]["laptime.dev/run-uid"] = uid
            fake.put(f"/api/v1/namespaces/team/configmaps/{one['metadata']['name']}", one)
        arguments = ("--kubeconfig", kubeconfig)
        code, out, _ = laptime("report", "first", "-o", "json", *arguments)
        assert (code, out) == (0, version_1.files()["data"]["results.json"])
        code, out, _ = laptime("report", "first", "-f", "-", *arguments)
        assert code == 0
        # Each curve of each trial.
        assert len(parse(out).all("svg")) > 3
        code, out, _ = laptime("compare", "first", "first", *arguments)
        assert code == 0
        assert "No difference found" in out

    def test_everything_can_be_had_as_files(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path
    ) -> None:
        store(fake)
        fold(fake)
        arguments = ("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
        code, _, err = laptime(*arguments, "--stored", tmp_path / "all")
        assert code == 0
        assert f"Wrote {1 + len(PAYLOADS)} files" in err
        assert (tmp_path / "all" / "results.json").read_text() == to_json(REPORT)
        for trial, payload in PAYLOADS.items():
            text = (tmp_path / "all" / f"{trial}-0a1b2c3d" / "generator.b64").read_text()
            assert document_of(text) == document_of(payload)

    def test_what_was_stored_of_an_earlier_run_is_not_among_it(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path
    ) -> None:
        def contents() -> dict[Path, str]:
            return {file: file.read_text() for file in folder.rglob("*") if file.is_file()}

        folder = tmp_path / "all"
        arguments = ("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
        store(fake)
        fold(fake)
        assert laptime(*arguments, "--stored", folder)[0] == 0
        # As by --again, with fewer repetitions: some of the earlier trials would stay.
        store(fake, recording=SMALL)
        fold(fake)
        before = contents()
        code, _, err = laptime(*arguments, "--stored", folder)
        assert code == 1
        uid = fake.objects["/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/demo"][
            "metadata"
        ]["uid"]
        assert re.search(rf"{folder}/.*/generator.b64 was not written by --stored", err)
        assert f"write --stored demo-{uid}, or delete what is there" in err
        assert contents() == before
        # So it is in what an earlier version wrote.
        (folder / "laptime-run.json").unlink()
        assert laptime(*arguments, "--stored", folder)[0] == 1

    def test_a_run_is_written_again_without_what_it_has_no_more(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path
    ) -> None:
        folder = tmp_path / "all"
        store(fake)
        command = ("report", "demo", "-o", "table", "--kubeconfig", kubeconfig, "--stored", folder)
        assert laptime(*command)[0] == 0
        (folder / "notes.txt").write_text("somebody's own")
        record = json.loads((folder / "laptime-run.json").read_text())
        record["files"] += ["../kubeconfig", str(kubeconfig)]
        (folder / "laptime-run.json").write_text(json.dumps(record))
        (path, *_) = (path for path in fake.objects if path.endswith("-0a1b2c3d"))
        del fake.objects[path]
        code, _, err = laptime(*command)
        assert code == 0, err
        assert not (folder / path.rsplit("/", 1)[1]).exists()
        assert (folder / "notes.txt").exists()
        assert kubeconfig.exists()
        assert json.loads((folder / "laptime-run.json").read_text())["files"] == sorted(
            str(file.relative_to(folder))
            for file in folder.rglob("*")
            if file.is_file() and file.name not in ("notes.txt", "laptime-run.json")
        )

    def test_files_of_others_are_neither_in_the_way_nor_deleted(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path
    ) -> None:
        """Such as a folder of reports of many things, and one that is somewhere else by now."""
        folder, elsewhere = tmp_path / "all", tmp_path / "elsewhere"
        store(fake)
        fold(fake)
        command = ("report", "demo", "-o", "table", "--kubeconfig", kubeconfig, "--stored", folder)
        (folder / "other").mkdir(parents=True)
        (folder / "other" / "results.json").write_text("{}")
        elsewhere.mkdir()
        (elsewhere / "generator.b64").write_text("somebody's own")
        (folder / "moved").symlink_to(elsewhere)
        code, _, err = laptime(*command)
        assert code == 0, err
        record = json.loads((folder / "laptime-run.json").read_text())
        record["files"].append("moved/generator.b64")
        (folder / "laptime-run.json").write_text(json.dumps(record))
        assert laptime(*command)[0] == 0
        assert (elsewhere / "generator.b64").exists()
        assert (folder / "other" / "results.json").read_text() == "{}"

    @pytest.mark.parametrize("name", ["../up", "/etc/up", "a/../../up", "..", "laptime-run.json"])
    def test_no_name_leads_out_of_the_folder(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, tmp_path: Path, name: str
    ) -> None:
        store(fake)
        head = fake.objects["/api/v1/namespaces/team/configmaps/demo-results"]
        packed = pack({name: "theirs"}, [])
        head["binaryData"] = {"archive.xz": base64.b64encode(packed).decode()}
        folder = tmp_path / "folder"
        arguments = ("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
        code, _, err = laptime(*arguments, "--stored", folder)
        assert code == 1
        assert "under a name that is none" in err
        assert [path.name for path in tmp_path.rglob("*")] == ["kubeconfig"]

    def test_what_a_newer_version_left_is_not_guessed(
        self, laptime: Laptime, fake: Any, kubeconfig: Path
    ) -> None:
        store(fake)
        fold(fake)
        head = fake.objects["/api/v1/namespaces/team/configmaps/demo-results"]
        head["metadata"]["annotations"]["laptime.dev/stored-version"] = "9"
        code, _, err = laptime("report", "demo", "--kubeconfig", kubeconfig)
        assert code == 1
        assert "in the form of version 9" in err


class TestCompare:
    def test_the_same_again_shows_no_difference(
        self, laptime: Laptime, fake: Any, kubeconfig: Path
    ) -> None:
        store(fake)
        store(fake, "again")
        code, out, _ = laptime("compare", "demo", "again", "--kubeconfig", kubeconfig)
        assert code == 0
        assert "No difference found" in out
        assert "1.00x (" in out
        assert "differ in more" not in out

    def test_a_slower_server_is_found_and_can_fail_a_pipeline(
        self, laptime: Laptime, fake: Any, kubeconfig: Path
    ) -> None:
        store(fake)
        store(fake, "again", changed(0.9))
        arguments = ("compare", "demo", "again", "--kubeconfig", kubeconfig)
        code, out, _ = laptime(*arguments)
        assert code == 0
        slower = ", ".join(f"axum (requests/s, {load})" for load in ("closed", "open", "ramp"))
        assert f"Worse: {slower} and axum (requests/s, limit)." in out
        code, _, _ = laptime(*arguments, "--fail-if-worse")
        assert code == 2

    def test_a_slower_machine_is_no_slower_server_beside_one_that_stays_the_same(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before = with_images(REPORT.trials, "axum@sha256:1")
        same, worse = (
            with_images(trials, "axum@sha256:2", 0.8) for trials in (REPORT.trials, changed(0.9))
        )
        files = two_files(tmp_path, before, same)
        code, out, _ = laptime("compare", *files, "--fail-if-worse")
        said = " ".join(out.split())
        assert code == 0
        assert "No difference found: a smaller one" in said
        assert "A factor relative to fastapi, fastapi-async and axum-again, which are the" in said
        assert "is not the quotient of the two figures beside it: what changed for them is" in said
        assert "What changed for the same servers is what the machine did between the two" in said
        assert "is in no interval" not in said
        _, markdown, _ = laptime("compare", *files, "-o", "markdown")
        lines = markdown.splitlines()
        (mine,) = [one for one in lines if one.startswith("| axum | closed | requests/s |")]
        assert mine.endswith(" | no difference found, relative to 3 same servers |")
        (other,) = [one for one in lines if one.startswith("| fastapi | closed | requests/s |")]
        assert " | 0.8x (" in other
        assert other.endswith(" | same server |")
        assert any(one.startswith("- A factor relative to fastapi,") for one in lines)
        code, out, _ = laptime(
            "compare", *two_files(tmp_path, before, worse), "-o", "json", "--fail-if-worse"
        )
        assert code == 2
        document = json.loads(out)
        found = {
            (one["server"], one["load"], one["figure"]): one for one in document["comparisons"]
        }
        axum = found["axum", "closed", "requests/s"]
        assert (axum["change"], axum["relativeTo"]) == (
            "worse",
            ["fastapi", "fastapi-async", "axum-again"],
        )
        assert axum["ratio"]["value"] == pytest.approx(0.9)
        assert axum["after"]["value"] / axum["before"]["value"] == pytest.approx(0.72)
        fastapi = found["fastapi", "closed", "requests/s"]
        assert (fastapi["change"], fastapi["relativeTo"]) == ("same server", [])
        assert any("is not the quotient" in one for one in document["notes"])

    def test_where_no_server_stays_the_same_the_machine_may_be_why(
        self, laptime: Laptime, fake: Any, kubeconfig: Path
    ) -> None:
        store(fake)
        store(fake, "again", changed(0.9))
        arguments = ("compare", "demo", "again", "--kubeconfig", kubeconfig)
        for form in ("table", "markdown"):
            _, out, _ = laptime(*arguments, "-o", form)
            assert IN_NO_INTERVAL in " ".join(out.split())
        for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
            _, out, _ = laptime(*arguments, "-o", form)
            assert read(out)["notes"] == [IN_NO_INTERVAL]
        _, out, _ = laptime("compare", "--help")
        said = " ".join(out.replace("│", " ").split())
        assert "what the machine did between the two runs is in no interval" in said

    def test_where_no_server_has_changed_that_is_said(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        trials = with_images(REPORT.trials, "axum@sha256:1")
        slower = with_images(REPORT.trials, "axum@sha256:1", 0.8)
        code, out, _ = laptime(
            "compare", *two_files(tmp_path, trials, slower), "-o", "json", "--fail-if-worse"
        )
        assert code == 2
        document = json.loads(out)
        assert {one["change"] for one in document["comparisons"]} == {
            "worse",
            "no difference found",
        }
        assert document["notes"] == [
            "By specs and images no server has changed: what is better or worse is what else "
            "differs, or what the machine did between the two runs, which is in no interval."
        ]

    def test_a_server_that_was_not_measured_again_leaves_the_same_ones_what_they_are(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before = with_images(REPORT.trials, "axum@sha256:1")
        slower = with_images(REPORT.trials, "axum@sha256:2", 0.8)
        after = [one for one in slower if one.server != "axum"]
        code, out, _ = laptime("compare", *two_files(tmp_path, before, after), "--fail-if-worse")
        said = " ".join(out.split())
        assert code == 3
        assert "axum under closed has trials in the earlier one only" in said
        assert "Worse" not in said
        assert "no server has changed" not in said

    def test_who_shares_too_few_repetitions_with_the_same_ones_is_not_told_to_add_one(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before = with_images(REPORT.trials, "axum@sha256:1")
        after = [
            one
            for one in with_images(REPORT.trials, "axum@sha256:2")
            if one.server == "axum" or one.repetition == 1
        ]
        _, out, _ = laptime("compare", *two_files(tmp_path, before, after), "-o", "json")
        document = json.loads(out)
        changes = {one["server"]: one["change"] for one in document["comparisons"]}
        assert changes["fastapi"] == "same server"
        notes = " ".join(document["notes"])
        assert "servers that stay the same share too few with them" in notes
        assert "add to both runs" not in notes
        assert "is not the quotient" not in notes

    def test_trials_that_a_same_server_lost_do_not_fail_a_gate(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        lost = {"figures": None, "outcome": "Failed", "fault": "server", "reason": "ServerCrashed"}
        before = with_images(REPORT.trials, "axum@sha256:1")
        after = [
            TrialResult.model_validate({**one.to_wire(), **lost})
            if one.server == "fastapi" and one.repetition == 1
            else one
            for one in with_images(REPORT.trials, "axum@sha256:2")
        ]
        code, out, _ = laptime("compare", *two_files(tmp_path, before, after), "--fail-if-worse")
        said = " ".join(out.split())
        assert code == 0
        assert "fastapi under closed: 4 of 5 trials count in the later run, 5 of 5 in the" in said
        assert "cannot be judged" not in said
        # It lacks a repetition, so the others are what axum is beside.
        assert "relative to fastapi-async and axum-again, which are the same in both" in said

    def test_doubts_about_the_figures_are_not_hidden(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.json"
        path.write_text(to_json(REPORT))
        doubtful = [row for row in REPORT.summary.rows if row.validity_reasons]
        assert doubtful
        _, out, _ = laptime("compare", path, path)
        _, document, _ = laptime("compare", path, path, "-o", "json")
        for row in doubtful:
            said = f"{row.server} under {row.load} is {row.validity}: {row.validity_reasons[0]}"
            assert said[:60] in " ".join(out.split())
            assert f"{path}: {said}" in json.loads(document)["doubts"]

    def test_programs_get_json_or_yaml(self, laptime: Laptime, fake: Any, kubeconfig: Path) -> None:
        store(fake)
        store(fake, "again", changed(1.2))
        arguments = ("compare", "demo", "again", "--kubeconfig", kubeconfig)
        _, out, _ = laptime(*arguments, "-o", "json")
        found = {
            (one["server"], one["load"], one["figure"]): one
            for one in json.loads(out)["comparisons"]
        }
        axum = found["axum", "closed", "requests/s"]
        assert axum["change"] == "better"
        assert axum["ratio"]["value"] == pytest.approx(1.2)
        assert axum["ratio"]["low"] < 1.2 < axum["ratio"]["high"]
        _, out, _ = laptime(*arguments, "-o", "yaml")
        assert yaml.safe_load(out)["comparisons"] == list(found.values())

    def test_markdown_says_the_same_as_the_table_and_calls_nobody(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(to_json(REPORT))
        named = SPEC.model_copy(update={"scenario": "@everybody"})
        after.write_text(to_json(replace(REPORT, spec=named)))
        _, table, _ = laptime("compare", before, after)
        code, out, _ = laptime("compare", before, after, "-o", "markdown")
        assert code == 0
        lines = out.splitlines()
        assert lines[0].startswith("| SERVER | LOAD | FIGURE |")
        assert lines[1] == "| --- | --- | --- | --- | --- | --- | --- |"
        (line,) = [one for one in lines if one.startswith("| axum | closed | requests/s |")]
        assert line.endswith(" | no difference found |")
        figures = [one.strip() for one in line.strip("|").split("|")]
        shown = next(one for one in table.splitlines() if "axum" in one and "closed" in one)
        assert " ".join(figures) == " ".join(shown.split())
        assert "No difference found: a smaller one" in out
        assert "- The runs differ in more: the scenario: users and `@everybody.`" in lines
        doubtful = sum(len(row.validity_reasons) for row in REPORT.summary.rows)
        assert sum(one.startswith("- ") for one in lines) >= 1 + doubtful
        assert "## " not in out

    def test_kept_results_can_be_compared_without_a_cluster(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(to_json(REPORT))
        spec = SPEC.model_copy(update={"scenario": "other"})
        after.write_text(to_json(replace(REPORT, spec=spec)))
        code, out, _ = laptime("compare", before, after)
        assert code == 0
        assert "The runs differ in more: the scenario: users and other." in out

    def test_a_server_that_answers_nothing_any_more_is_worse(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(to_json(REPORT))
        trials = [silenced(one) if one.server == "axum" else one for one in REPORT.trials]
        after.write_text(to_json(replace(REPORT, trials=trials)))
        code, out, _ = laptime("compare", before, after, "--fail-if-worse")
        assert code == 2
        assert "Worse: axum (requests/s, closed)" in out
        assert "cannot be judged" not in out

    @pytest.mark.parametrize(
        ("repetitions", "change", "said"),
        [
            (1, {}, "What has a figure of one repetition only cannot be judged."),
            (9, {"validity": "invalid"}, "What has no figure in one of the runs cannot be judged."),
        ],
    )
    def test_why_something_cannot_be_judged_is_said_as_it_is(
        self,
        laptime: Laptime,
        tmp_path: Path,
        repetitions: int,
        change: dict[str, Any],
        said: str,
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(to_json(REPORT))
        trials = [
            TrialResult.model_validate({**one.to_wire(), **change})
            for one in REPORT.trials
            if one.repetition <= repetitions
        ]
        after.write_text(to_json(replace(REPORT, trials=trials)))
        code, out, _ = laptime("compare", before, after, "--fail-if-worse")
        assert code == 3
        assert said in " ".join(out.split())

    def test_a_server_that_was_not_measured_again_is_named(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(to_json(REPORT))
        trials = [one for one in REPORT.trials if one.server != "axum"]
        rows = [
            row.model_copy(update={"reason": "WrongAnswer", "message": "GET /: wrong"})
            if row.server == "axum"
            else row
            for row in REPORT.summary.rows
        ]
        summary = replace(REPORT.summary, rows=tuple(rows))
        end = End("Failed", "ServersFailed", "axum")
        later = replace(REPORT, trials=trials, summary=summary, end=end)
        after.write_text(to_json(later))
        code, out, _ = laptime("compare", before, after, "--fail-if-worse")
        said = " ".join(out.split())
        assert code == 3
        assert "axum under closed has trials in the earlier one only" in said
        assert "axum under closed: WrongAnswer: GET /: wrong" in said
        assert "The run ended as Failed: ServersFailed: axum" in said
        assert "What was not measured again cannot be judged." in said
        assert "No difference found:" not in said
        assert laptime("compare", before, after)[0] == 0
        # The other way round nothing got worse.
        assert laptime("compare", after, before, "--fail-if-worse")[0] == 0

    def test_a_server_that_crashes_now_and_then_does_not_pass_a_gate(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(to_json(REPORT))
        lost = {"figures": None, "outcome": "Failed", "fault": "server", "reason": "ServerCrashed"}
        trials = [
            TrialResult.model_validate({**one.to_wire(), **lost})
            if one.server == "axum" and one.repetition < 3
            else one
            for one in REPORT.trials
        ]
        after.write_text(to_json(replace(REPORT, trials=trials)))
        code, out, _ = laptime("compare", before, after, "--fail-if-worse")
        said = " ".join(out.split())
        assert code == 3
        assert "axum under closed: 3 of 5 trials count in the later run, 5 of 5 in the" in said
        assert "What has fewer trials that count than before cannot be judged." in said

    def test_a_run_that_was_cut_short_does_not_pass_a_gate(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(to_json(REPORT))
        partial = {"state": RowState.PARTIAL, "trials": 2}
        rows = [
            row.model_copy(update=partial) if row.state is RowState.MEASURED else row
            for row in REPORT.summary.rows
        ]
        later = replace(
            REPORT,
            trials=[one for one in REPORT.trials if one.repetition <= 2],
            summary=replace(REPORT.summary, rows=tuple(rows)),
            end=End("Failed", "TurnOver", "it has had its turn for 1h"),
        )
        after.write_text(to_json(later))
        code, out, _ = laptime("compare", before, after, "--fail-if-worse")
        said = " ".join(out.split())
        assert code == 3
        assert "axum under closed: the later run ended after 2 of its repetitions, the" in said
        assert "was not measured to the end" in said
        assert "No difference found:" not in said
        # The other way round nothing is missing in the later run.
        assert laptime("compare", after, before, "--fail-if-worse")[0] == 0
        # Where every run ends so, the gate does not come to pass the second one.
        assert laptime("compare", after, after, "--fail-if-worse")[0] == 3

    @pytest.mark.parametrize("lost", [0, 1])
    def test_a_run_that_had_decided_nothing_does_not_pass_a_gate(
        self, laptime: Laptime, tmp_path: Path, lost: int
    ) -> None:
        """Its turn was over in a repetition that the changed server had made already."""
        decided = {"stopWhen": "decided", "maxRepetitions": 12}
        spec = BenchmarkRunSpec.model_validate(SPEC.to_wire() | decided)
        files = tmp_path / "before.json", tmp_path / "after.json"
        images = [with_images(REPORT.trials, f"axum@sha256:{number}") for number in (1, 2)]
        files[0].write_text(to_json(replace(REPORT, spec=spec, trials=images[0])))
        fewer = {"state": RowState.PARTIAL, "trials": 4}
        if lost:
            fewer = {**fewer, "failed_trials": 1, "trials": 3, "reason": "TrialsFailed"}
        later = replace(
            REPORT,
            spec=spec,
            trials=[one for one in images[1] if one.server != "fastapi" or one.repetition < 5],
            summary=replace(
                REPORT.summary,
                rows=tuple(
                    row.model_copy(update=fewer) if row.server == "fastapi" else row
                    for row in REPORT.summary.rows
                ),
            ),
            end=End("Failed", "TurnOver", "it has had its turn for 1h"),
        )
        files[1].write_text(to_json(later))
        code, out, _ = laptime("compare", *files, "--fail-if-worse")
        assert code == 3
        assert "axum under closed: the later run ended after 5 of its" in " ".join(out.split())
        whole = replace(REPORT, spec=spec, trials=images[1], end=later.end)
        files[1].write_text(to_json(whole))
        assert laptime("compare", *files, "--fail-if-worse")[0] == 0

    def test_a_same_server_that_was_cut_short_does_not_fail_a_gate(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = two_files(
            tmp_path,
            with_images(REPORT.trials, "axum@sha256:1"),
            with_images(REPORT.trials, "axum@sha256:2"),
        )
        partial = {"state": RowState.PARTIAL, "trials": 4}
        rows = [
            row.model_copy(update=partial) if row.server == "fastapi" else row
            for row in REPORT.summary.rows
        ]
        trials = [
            one
            for one in with_images(REPORT.trials, "axum@sha256:2")
            if one.server != "fastapi" or one.repetition <= 4
        ]
        summary = replace(REPORT.summary, rows=tuple(rows))
        after.write_text(to_json(replace(REPORT, trials=trials, summary=summary)))
        code, out, _ = laptime("compare", before, after, "--fail-if-worse")
        said = " ".join(out.split())
        assert code == 0
        assert "fastapi under closed: the later run ended after 4 of its repetitions" in said
        assert "cannot be judged" not in said

    def test_runs_in_different_placements_are_not_compared_without_a_word(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(to_json(REPORT))
        isolated = RunPlacement(name="isolated", rules="0a")
        after.write_text(to_json(replace(REPORT, placement=isolated)))
        _, out, _ = laptime("compare", before, after)
        assert "The runs differ in more: the placement: none and isolated." in out
        _, out, _ = laptime("compare", before, after, "-o", "json")
        assert json.loads(out)["differences"] == ["the placement: none and isolated"]
        _, out, _ = laptime("compare", after, after)
        assert "differ in more" not in out

    def test_runs_of_two_versions_of_laptime_are_not_compared_without_a_word(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(to_json(replace(REPORT, laptime_version="0.0.7")))
        after.write_text(to_json(replace(REPORT, laptime_version="0.0.8")))
        _, out, _ = laptime("compare", before, after)
        assert "The runs differ in more: the version of Laptime: 0.0.7 and 0.0.8." in out

    def test_runs_on_nodes_with_other_cpus_are_not_compared_without_a_word(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        def on(model: str) -> Path:
            path = tmp_path / f"{model}.json"
            node = {"node": "n1", "cpus": 2, "cpuModel": model}
            usage = {"source": "agent", "complete": True, "nodes": [node]}
            trials = [
                TrialResult.model_validate({**one.to_wire(), "usage": usage})
                for one in REPORT.trials
            ]
            path.write_text(to_json(replace(REPORT, trials=trials)))
            return path

        _, out, _ = laptime("compare", on("EPYC"), on("Xeon"))
        assert "The runs differ in more: the CPUs: EPYC and Xeon." in " ".join(out.split())

    @pytest.mark.parametrize("all_of_them", [True, False])
    def test_a_server_of_which_no_trial_counts_is_named_and_is_in_both_runs(
        self, laptime: Laptime, tmp_path: Path, all_of_them: bool
    ) -> None:
        path = tmp_path / "a.json"
        invalid = {"validity": "invalid"}
        trials = [
            TrialResult.model_validate({**one.to_wire(), **invalid})
            if all_of_them or one.server == "axum"
            else one
            for one in REPORT.trials
        ]
        rows = [
            row.model_copy(update={"validity_reasons": ["half of the answers were wrong"]})
            if row.server == "axum"
            else row
            for row in REPORT.summary.rows
        ]
        summary = replace(REPORT.summary, rows=tuple(rows))
        path.write_text(to_json(replace(REPORT, trials=trials, summary=summary)))
        code, out, err = laptime("compare", path, path)
        said = " ".join((err if all_of_them else out).split())
        assert code == (1 if all_of_them else 0)
        assert "in common" not in said
        assert "axum under closed is not compared: no trial of it counts in either run" in said
        assert ": half of the answers were wrong" in said
        if not all_of_them:
            _, out, _ = laptime("compare", path, path, "-o", "json")
            doubts = json.loads(out)["doubts"]
            assert any(one.startswith("axum under closed is not compared") for one in doubts)

    def test_runs_without_a_server_in_common_are_not_compared(
        self, laptime: Laptime, tmp_path: Path
    ) -> None:
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        for file, kept in ((before, True), (after, False)):
            trials = [one for one in REPORT.trials if (one.server == "axum") is kept]
            file.write_text(to_json(replace(REPORT, trials=trials)))
        code, _, err = laptime("compare", before, after)
        assert code == 1
        assert "have no server and load in common" in err

    def test_results_without_trials_are_refused(self, laptime: Laptime, tmp_path: Path) -> None:
        small = tmp_path / "small.json"
        document = json.loads(to_json(REPORT))
        small.write_text(json.dumps({**document, "trials": [], "leftOut": ["trials"]}))
        code, _, err = laptime("compare", small, small)
        assert code == 1
        assert "has no figures of single trials: they did not fit" in err

    @pytest.mark.parametrize(
        ("text", "said"),
        [(None, "No such file or directory"), ("[]", "is no results.json")],
    )
    def test_what_is_no_result_is_refused(
        self, laptime: Laptime, tmp_path: Path, text: str | None, said: str
    ) -> None:
        path = tmp_path / "a.json"
        if text is not None:
            path.write_text(text)
        code, _, err = laptime("compare", path, path)
        assert code == 1
        assert said in err

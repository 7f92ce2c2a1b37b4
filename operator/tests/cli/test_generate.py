"""What is generated is all that is there of its kind."""

from pathlib import Path

from laptime.cli.generate import write_crds


def test_a_crd_that_is_gone_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "laptime.dev_gone.yaml").write_text("stale\n")
    (tmp_path / "alerts.yaml").write_text("no CRD\n")
    write_crds(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "alerts.yaml",
        "laptime.dev_benchmarkruns.yaml",
        "laptime.dev_benchmarkscenarios.yaml",
    ]
    write_crds(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3

"""What is generated is all that is there of its kind."""

from pathlib import Path

import yaml

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


def test_no_tool_that_prunes_takes_the_crds_and_with_them_every_run(tmp_path: Path) -> None:
    write_crds(tmp_path)
    for file in tmp_path.iterdir():
        annotations = yaml.safe_load(file.read_text())["metadata"]["annotations"]
        assert annotations["helm.sh/resource-policy"] == "keep"
        # Each of the two goes by its own word alone.
        assert annotations["argocd.argoproj.io/sync-options"] == "Prune=false"
        assert annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled"

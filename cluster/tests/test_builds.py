"""What was built is of one version, whoever else builds into the same cache."""

from dataclasses import replace
from pathlib import Path

import pytest

from laptime_cluster import builds, cli, toolchain


@pytest.mark.parametrize(("tool", "name"), [("kubectl", "KUBERNETES"), ("helm", "HELM")])
def test_the_tool_that_is_asked_for_is_of_this_version(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tool: str,
    name: str,
) -> None:
    own = replace(getattr(builds, name), output=tmp_path / "tool-v1.9.0")
    monkeypatch.setattr(builds, "BIN", tmp_path)
    monkeypatch.setattr(builds, name, own)
    monkeypatch.setattr(builds, "ensure", lambda _: None)
    own.output.mkdir()
    # Another version, of another checkout.
    (tmp_path / "tool-v1.10.0").mkdir()
    assert cli.main(["path", tool]) == 0
    (tmp_path / tool).unlink()
    (tmp_path / tool).symlink_to(f"tool-v1.10.0/{tool}")
    assert capsys.readouterr().out == f"{own.output}/{tool}\n"


def test_a_build_that_is_killed_in_the_end_leaves_nothing_that_looks_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\nfor one; do case $one in */) touch "$one/a" "$one/b";; esac; done\n')
    go.chmod(0o755)
    monkeypatch.setattr(toolchain, "go", lambda: go)
    (tmp_path / "module").mkdir()
    old = replace(
        builds.HELM, module=tmp_path / "module", programs=("a", "b"), output=tmp_path / "output"
    )
    builds.ensure(old)
    assert old.is_done()
    new = replace(old, linker_variables=("of=another",))
    move = Path.replace

    def killed(file: Path, target: Path) -> None:
        if file.name == "b":
            raise KeyboardInterrupt
        move(file, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        builds.ensure(new)
    # One of its programs is the new one.
    assert not old.is_done()
    assert not new.is_done()

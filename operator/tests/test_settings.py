"""What the chart tells the operator, beside what has tests of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from laptime.settings import SettingsError, load_settings
from tests.manifests.runs import IMAGES


@pytest.fixture(autouse=True)
def images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file of images."""
    file = tmp_path / "images.json"
    file.write_text("{}")
    monkeypatch.setenv("LAPTIME_IMAGES_FILE", str(file))
    monkeypatch.setattr("laptime.settings.ImageSet.from_wire", lambda _: IMAGES)


def test_laptime_chooses_users_unless_the_cluster_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().foreign_users is False
    monkeypatch.setenv("LAPTIME_FOREIGN_USERS", "true")
    assert load_settings().foreign_users is True
    monkeypatch.setenv("LAPTIME_FOREIGN_USERS", "yes")
    with pytest.raises(SettingsError, match="LAPTIME_FOREIGN_USERS is 'yes': write true or false"):
        load_settings()


def test_kopf_answers_on_the_family_of_addresses_that_the_pod_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert load_settings().liveness_endpoint == "http://0.0.0.0:8080/healthz"
    monkeypatch.setenv("POD_IP", "2001:db8::7")
    assert load_settings().liveness_endpoint == "http://[::]:8080/healthz"

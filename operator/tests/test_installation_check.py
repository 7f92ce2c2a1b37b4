"""What `helm test` runs in the operator's image."""

from __future__ import annotations

import runpy
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.private_ca import Authority, as_in_python_3_13, tls_server

CHECK = Path(__file__).resolve().parents[2] / "charts/laptime/files/installation_test.py"


def test_the_ca_of_a_cluster_need_not_have_what_python_3_13_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it fails where operator and agent work."""
    as_in_python_3_13(monkeypatch)
    # Its certificate is the ca.crt of the account.
    authority = Authority(tmp_path, "ca")
    (tmp_path / "token").write_text("s3cr3t")
    with tls_server(authority.server("localhost")) as address:
        place = urlsplit(address)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(place.hostname))
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(place.port))
        api = runpy.run_path(str(CHECK))["api"]
        monkeypatch.setitem(api.__globals__, "ACCOUNT", tmp_path)
        assert api("/apis/laptime.dev/v1alpha1") == {}

"""How kopf asks the API server."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import kopf
import pytest

from laptime.handlers import login
from tests.private_ca import Authority, as_in_python_3_13, kubeconfig, tls_server


def test_kopf_trusts_the_ca_of_a_cluster_without_what_python_3_13_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_in_python_3_13(monkeypatch)
    authority = Authority(tmp_path, "cluster")
    with tls_server(authority.server("localhost")) as address:
        config = kubeconfig(tmp_path / "config", address, authority)
        monkeypatch.setenv("KUBECONFIG", str(config))
        found = login(settings=kopf.OperatorSettings())
        assert found is not None
        assert (found.server, found.token) == (address, "s3cr3t")
        with urlopen(address, context=found.as_ssl_context()) as answer:
            assert answer.read() == b"{}"

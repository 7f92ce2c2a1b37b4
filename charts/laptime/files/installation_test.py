"""Checks an installation from inside the cluster, for `helm test`; only the standard library."""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
API = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
WAIT_SECONDS = 60


def api(path):
    request = urllib.request.Request(API + path)
    request.add_header("Authorization", f"Bearer {(ACCOUNT / 'token').read_text()}")
    trust = ssl.create_default_context(cafile=ACCOUNT / "ca.crt")
    # Python 3.13 refuses the CA of many a cluster, for extensions that no other client wants.
    trust.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with urllib.request.urlopen(request, timeout=10, context=trust) as answer:
        return json.load(answer)


def served():
    names = [one["name"] for one in api("/apis/laptime.dev/v1alpha1")["resources"]]
    assert {"benchmarkruns", "benchmarkruns/status"} <= set(names), names
    return "the API server serves BenchmarkRun"


def readable():
    # One: the status of a run can be large, and there may be thousands.
    found = api("/apis/laptime.dev/v1alpha1/benchmarkruns?limit=1")
    count = len(found["items"]) + found["metadata"].get("remainingItemCount", 0)
    return f"the operator's account may list runs ({count} now)"


def healthy():
    with urllib.request.urlopen(os.environ["OPERATOR_HEALTH_URL"], timeout=10) as answer:
        assert answer.status == 200, answer.status
    return "the operator answers on /healthz"


def attempt(check, deadline):
    while True:
        try:
            print("ok:", check(), flush=True)
            return True
        except (AssertionError, OSError, urllib.error.URLError) as error:
            if time.monotonic() > deadline:
                print(f"not ok: {check.__name__}: {error}", flush=True)
                return False
            time.sleep(1)


if __name__ == "__main__":
    end = time.monotonic() + WAIT_SECONDS
    sys.exit(0 if all([attempt(check, end) for check in (served, readable, healthy)]) else 1)

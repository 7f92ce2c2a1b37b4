"""Settings of all tests."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

# No deadline: how long an example takes says more about the machine than about the code. The same
# examples each time, so that what proves a change says nothing of another one; `make fuzz` draws.
settings.register_profile("laptime", deadline=None, derandomize=True)
settings.register_profile("drawn", deadline=None)
settings.load_profile(os.environ.get("LAPTIME_EXAMPLES") or "laptime")

# Each client loads all certificates that it trusts when it is made, some 50 ms for those of a whole
# system: a quarter of what the tests of the controller took. None of them speaks to the internet.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "fixtures" / "authority.pem")

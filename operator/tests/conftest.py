"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# No deadline: how long an example takes says more about the machine than about the code.
settings.register_profile("laptime", deadline=None)
settings.load_profile("laptime")

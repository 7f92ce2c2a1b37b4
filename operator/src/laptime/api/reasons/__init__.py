"""The closed list of reasons: what each means, what to do, and who answers for it.

Decisions take from it whose fault something was, the report what to do, and `make generate` makes
docs/reference/reasons.md of it. A test holds the words in the code against it.
"""

from laptime.api.reasons.answers import ANSWERS
from laptime.api.reasons.before import BEFORE
from laptime.api.reasons.cluster import CLUSTER
from laptime.api.reasons.ends import ENDS
from laptime.api.reasons.normal import NORMAL
from laptime.api.reasons.objectives import OBJECTIVES
from laptime.api.reasons.pods import PODS
from laptime.api.reasons.profiles import PROFILES
from laptime.api.reasons.reason import Blame, Reason, Section
from laptime.api.reasons.services import SERVICES
from laptime.api.reasons.trials import TRIALS

SECTIONS = (NORMAL, BEFORE, PODS, CLUSTER, SERVICES, ANSWERS, TRIALS, PROFILES, ENDS, OBJECTIVES)
REASONS = {one.name: one for section in SECTIONS for one in section.reasons}

__all__ = ["REASONS", "SECTIONS", "Blame", "Reason", "Section"]

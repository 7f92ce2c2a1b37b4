"""What can go wrong between here and an API server, as one error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from laptime.api.text import shown

_LONGEST_MESSAGE = 2000
_NO_ANSWER = "no answer in time"
# As `metav1.StatusReason` has them.
_REASONS = {
    *("AlreadyExists", "BadRequest", "Conflict", "Expired", "Forbidden", "Gone", "InternalError"),
    *("Invalid", "MethodNotAllowed", "NotAcceptable", "NotFound", "RequestEntityTooLarge"),
    *("ServerTimeout", "ServiceUnavailable", "StorageReadError", "StoreReadError", "Timeout"),
    *("TooManyRequests", "Unauthorized", "UnsupportedMediaType"),
}

# A schema is asked twice: whether it can read what is applied at all, and then about its enums and
# kinds of numbers. What it lacks of a spec somebody else has written.
_UNREADABLE = "failed to create typed patch object"
_UNKNOWN = re.compile(
    r"(?<![\w.])status\.\S+: (Unsupported value: |Invalid value: \S+ \S+ in body must be of type )"
)


class KubeError(Exception):
    """The API server refused a request, or could not be reached (status 0)."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{reason} ({status}): {message}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def label(self) -> str:
        """One of few words for why it was: webhooks write sentences of their own as their reason.

        Kubernetes' reasons, and where nobody was reached, this client's.
        """
        known = self.status == 0 or self.reason in _REASONS
        return self.reason if known else f"Status{self.status}"

    @property
    def forbidden(self) -> bool:
        """Whether rights are missing."""
        return self.status == 403

    @property
    def timed_out(self) -> bool:
        """Whether no answer has come in time: nobody knows what has become of the request."""
        return self.status == 0 and _NO_ANSWER in self.message

    @property
    def not_found(self) -> bool:
        """Whether the object or its namespace does not exist."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """Whether the object exists already, was changed, or is another one than was meant."""
        return self.status == 409

    @property
    def another(self) -> bool:
        """Whether the object of that name is another one than was meant, by its uid."""
        return self.conflict and "UID in precondition" in self.message

    @property
    def expired(self) -> bool:
        """Whether the resource version that a watch should begin at is unknown or forgotten."""
        return self.status in (410, 504)

    @property
    def refused(self) -> bool:
        """Whether the same request will be refused again, until somebody changes something."""
        return self.status in (400, 403, 413, 422) and not self.terminating

    @property
    def out_of_room(self) -> bool:
        """Whether a quota keeps an object out: it may pass once others are gone."""
        return self.forbidden and "exceeded quota" in self.message

    @property
    def not_in_schema(self) -> bool:
        """Whether the API server's schema of a resource has no place or word for a status.

        Nothing of what was to be applied is stored then. Of a field that is not there, or of
        another type, it says so as an error of its own (500); of a word that an enum lacks, as one
        of the status (422).
        """
        unknown = self.status == 422 and _UNKNOWN.search(self.message) is not None
        # Two entries of one key are ours to mend, whatever schema there is.
        unreadable = _UNREADABLE in self.message and "duplicate entries" not in self.message
        return unknown or unreadable

    def of_a_kubelet(self) -> KubeError:
        """Return the same error as one of the way to a node, which says nothing of rights here."""
        return KubeError(502, self.reason, self.message)

    def about(self, kind: str, name: str) -> KubeError:
        """Return the same error, its message beginning with the object that it is about."""
        return KubeError(self.status, self.reason, f"{kind} {name}: {self.message}")

    @property
    def terminating(self) -> bool:
        """Whether the namespace is being deleted, so that nothing can be created in it."""
        return self.forbidden and "being terminated" in self.message


def kube_error(status: int, text: str) -> KubeError:
    """Return what an answer of this status and text says."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = {}
    reason = parsed.get("reason") if isinstance(parsed, dict) else None
    message = parsed.get("message") if isinstance(parsed, dict) else None
    # Quotas, webhooks and names of objects are other people's words.
    said = shown(str(message or text), _LONGEST_MESSAGE)
    return KubeError(status, shown(str(reason or "Error")), said)


@contextmanager
def reached() -> Iterator[None]:
    """Turn whatever a connection throws, or an answer that is none, into a KubeError of status 0.

    An answer can break off in its middle, or be garbage under a good status.
    """
    try:
        yield
    except TimeoutError as error:
        raise KubeError(0, "Unreachable", _NO_ANSWER) from error
    except (aiohttp.ClientError, OSError, EOFError) as error:
        raise KubeError(
            0, "Unreachable", shown(f"{type(error).__name__}: {error}", _LONGEST_MESSAGE)
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise KubeError(
            0, "Garbled", shown(f"{type(error).__name__}: {error}", _LONGEST_MESSAGE)
        ) from error

"""Regular expressions of captures, which RE2 (the generator) and Python both know. Pure."""

from __future__ import annotations

import re
import warnings

_ESCAPE = r"\\(?:[dDsSwWnrtfva]|x[0-9a-fA-F]{2}|[^0-9A-Za-z])"
_TOKEN = re.compile(
    rf"""
      {_ESCAPE} | \\[AbB]
    | \[ \^? \]? (?: {_ESCAPE} | [^\[\]\\] )* \]
    | (?P<foreign>
          \\.?                                     # references, \Z, \pL
        | \[                                       # classes in classes
        | \(\? (?! : | P<[A-Za-z_] | [ims]+[:)] )  # look-around, conditions, comments
        | [*+?}}]\+                                # possessive
        | \{{ , | \{{ [0-9]* ,? [0-9]{{4,}}        # bounds
      )
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def pattern_of(regex: str) -> re.Pattern[str]:
    """Return a regular expression that finds here what it finds in the generator.

    Raises:
        ValueError: it is none, or one of the two would understand it differently.
    """
    for token in _TOKEN.finditer(regex):
        if token["foreign"]:
            raise ValueError(
                f"{regex[token.start() : token.start() + 20]!r} is not known everywhere: write "
                "groups, classes such as [0-9a-f] and repetitions, without look-around and back "
                "references"
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(regex, re.ASCII)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        raise ValueError(f"is no regular expression: {error}") from None

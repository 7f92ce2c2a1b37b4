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
    | (?P<opens> \( (?: \? (?P<flags> [ims]+ ) (?P<then> [:)] ) )? )
    | (?P<closes> \) )
    | (?P<end> \$ )
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def pattern_of(regex: str) -> re.Pattern[str]:
    """Return a regular expression that finds here what it finds in the generator.

    Raises:
        ValueError: it is none, or one of the two would understand it differently.
    """
    text = ""
    # Of each group that is open, whether $ is the end of a line in it: (?m).
    lines = [False]
    for token in _TOKEN.finditer(regex):
        if token["foreign"]:
            raise ValueError(
                f"{regex[token.start() : token.start() + 20]!r} is not known everywhere: write "
                "groups, classes such as [0-9a-f] and repetitions, without look-around and back "
                "references"
            )
        if token["opens"]:
            by_line = lines[-1] or "m" in (token["flags"] or "")
            if token["then"] == ")":
                lines[-1] = by_line
            else:
                lines.append(by_line)
        elif token["closes"] and len(lines) > 1:
            lines.pop()
        # Before a last line feed the text is not at its end yet, as Python's own $ has it.
        text += r"\Z" if token["end"] and not lines[-1] else token[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(text, re.ASCII)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        raise ValueError(f"is no regular expression: {error}") from None

"""A regular expression of a capture is one that the generator and the verifier both know."""

from __future__ import annotations

import pytest

from laptime.catalog import pattern_of


@pytest.mark.parametrize(
    "regex",
    [
        r"/items/(.+)", r'"id":\s*(\d+)', r"[A-Za-z0-9_-]{8,64}", r"(?P<name>x)|y",
        r"(?i)token=(\w+)", r"(?:a|b)*?c$", r"\++", r"a{2}", r"[^]]", r"\[\d\]", r"\x41", r"^\bx\B",
    ],
)  # fmt: skip
def test_what_both_know_is_taken(regex: str) -> None:
    # The end of a text is written in another way here.
    assert pattern_of(regex).pattern.replace(r"\Z", "$") == regex


@pytest.mark.parametrize(
    "regex",
    [
        r"(?=x)", r"(?!x)", r"(?<=x)", r"(?<!x)", r"(x)\1", r"(?P=n)", r"(?>x)", r"(x)?(?(1)a|b)",
        r"a*+", r"a++", r"a{1000}", r"a{,3}", r"a{1,2000}", r"\Z", r"\pL", r"[[:alpha:]]", r"[\1]",
        r"(?#x)", r"(?x) a", "\\", r"\u0041",
    ],
)  # fmt: skip
def test_what_one_of_them_does_not_know_is_refused(regex: str) -> None:
    with pytest.raises(ValueError, match="is not known everywhere: write groups"):
        pattern_of(regex)


@pytest.mark.parametrize("regex", ["(", "a)", "[a", "*", "a**", "x{3,2}"])
def test_what_is_no_regular_expression_is_refused(regex: str) -> None:
    with pytest.raises(ValueError, match=r"is no regular expression|is not known everywhere"):
        pattern_of(regex)


def test_digits_and_letters_are_those_of_ascii() -> None:
    assert pattern_of(r"\d").search("٣") is None
    assert pattern_of(r"\w").search("ü") is None

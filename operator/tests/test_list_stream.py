"""A list is read item by item, however its bytes come in."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime import list_stream
from laptime.list_stream import ListStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=6)


def read(chunks: list[bytes]) -> tuple[list[Any], ListStream]:
    stream = ListStream()
    return [item for chunk in chunks for item in stream.feed(chunk)], stream


@given(ITEMS, st.data(), st.booleans(), st.sampled_from([None, 2]))
def test_items_come_out_however_the_bytes_are_cut(
    items: list[dict[str, Any]], data: st.DataObject, first: bool, indent: int | None
) -> None:
    metadata = {"metadata": {"resourceVersion": "12"}}
    document = {"kind": "List", **(metadata if first else {}), "items": items, **metadata}
    whole = json.dumps(document, indent=indent, ensure_ascii=False).encode()
    places = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=9)))
    cuts = [0, *places, len(whole)]
    found, stream = read([whole[a:b] for a, b in itertools.pairwise(cuts)])
    assert found == items
    assert stream.done
    assert stream.rest == {"kind": "List", **metadata}


@pytest.mark.parametrize("end", range(1, 60))
def test_a_list_that_breaks_off_is_never_done(end: int) -> None:
    whole = json.dumps({"items": [{"a": 1}, {"b": [2.5]}], "metadata": {"resourceVersion": "1"}})
    found, stream = read([whole.encode()[:end]])
    assert not stream.done
    assert len(found) <= 2


@pytest.mark.parametrize("items", ["null", "[]"])
def test_a_list_without_items_is_one(items: str) -> None:
    found, stream = read([b'{"items":' + items.encode() + b',"metadata":{"resourceVersion":"3"}}'])
    assert (found, stream.done) == ([], True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1]", "expected '{'"),
        ("<html>", "expected '{'"),
        ('{"items": {"a": 1}}', "are no list"),
        ('{"items": [1, 2]}', "is int"),
        ('{"items" [', "expected ':'"),
        ("\xff", "invalid start byte"),
    ],
)
def test_what_is_no_list_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read([text.encode("latin-1")])


def test_the_agent_reads_lists_by_the_same_code() -> None:
    """It is a package of its own, in an image without the operator's."""
    theirs = Path(__file__).parents[2] / "agent/src/laptime_agent/list_stream.py"
    assert theirs.read_text() == Path(list_stream.__file__).read_text()

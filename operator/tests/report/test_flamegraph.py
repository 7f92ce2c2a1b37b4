"""A flame graph shows each function over the ones that called it, as wide as its share."""

from __future__ import annotations

from xml.etree import ElementTree

from laptime.report.flamegraph import MAX_BYTES, flame_graph

SVG = "{http://www.w3.org/2000/svg}"


def boxes(picture: str) -> dict[str, tuple[float, float, float]]:
    """Return left edge, height above the ground and width of each box, by its hint."""
    root = ElementTree.fromstring(picture)
    height = float(root.attrib["viewBox"].split()[3])
    found = {}
    for group in root.iter(f"{SVG}g"):
        title, rect = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None
        assert rect is not None
        x, y, width = (float(rect.attrib[name]) for name in ("x", "y", "width"))
        found[str(title.text)] = (x, height - y, width)
    return found


def test_each_function_stands_on_its_caller_and_is_as_wide_as_its_share() -> None:
    stacks = {("main", "b", "c"): 25, ("main", "a"): 50, ("main",): 25}
    assert boxes(flame_graph("axum under closed", stacks)) == {
        "main (100 samples, 100.0 %)": (0, 17, 1200),
        "a (50 samples, 50.0 %)": (0, 34, 600),
        "b (25 samples, 25.0 %)": (600, 34, 300),
        "c (25 samples, 25.0 %)": (600, 51, 300),
    }


def test_names_of_functions_are_text_and_nothing_else() -> None:
    evil = '</title><script>alert("x")</script>'
    picture = flame_graph("<b>", {(evil, "Vec<u8>::push"): 1})
    assert "<script" not in picture
    assert "<b>" not in picture
    assert f"{evil} (1 samples, 100.0 %)" in boxes(picture)


def test_what_cannot_be_seen_is_left_out() -> None:
    picture = flame_graph("t", {("main", "wide"): 9_999, ("main", "thin"): 1})
    assert "wide" in picture
    assert "thin" not in picture


def test_a_picture_always_fits_into_a_config_map() -> None:
    names = [f"{number}-" + "<" * 190 for number in range(1000)]
    picture = flame_graph("t", {("main", name, "x"): 1 + n % 7 for n, name in enumerate(names)})
    assert len(picture.encode()) <= MAX_BYTES
    assert "main" in picture


def test_it_is_the_same_for_the_same_stacks() -> None:
    stacks = [(("a",), 1), (("b", "c"), 2)]
    assert flame_graph("t", dict(stacks)) == flame_graph("t", dict(reversed(stacks)))

"""Which bits a reference names, and which ones a kubelet says that it has."""

from __future__ import annotations

import pytest

from laptime.api.images import brought_by_hand, by_digest

DIGEST = "sha256:0a"


@pytest.mark.parametrize(
    ("image", "image_id", "expected"),
    [
        ("one.example/a/mine:main", f"one.example/a/mine@{DIGEST}", "one.example/a/mine"),
        ("one.example:5000/mine", f"one.example:5000/mine@{DIGEST}", "one.example:5000/mine"),
        ("localhost/mine:1", f"localhost/mine@{DIGEST}", "localhost/mine"),
        # The runtime writes the names of Docker Hub in full, the run keeps its own.
        ("mine:main", f"docker.io/library/mine@{DIGEST}", "mine"),
        ("team/mine", f"docker.io/team/mine@{DIGEST}", "team/mine"),
        ("docker.io/mine:1", f"docker.io/library/mine@{DIGEST}", "docker.io/mine"),
        ("team/mine:1", f"docker-pullable://team/mine@{DIGEST}", "team/mine"),
    ],
)  # fmt: skip
def test_a_tag_is_named_by_its_digest_in_the_repository_of_the_run(
    image: str, image_id: str, expected: str
) -> None:
    assert by_digest(image, image_id) == f"{expected}@{DIGEST}"


@pytest.mark.parametrize(
    "image_id",
    [
        f"mirror.example/mine@{DIGEST}",
        f"docker.io/team/mine@{DIGEST}",
        f"docker.io/library/import-2026-11-29@{DIGEST}",
        DIGEST,
        f"docker://{DIGEST}",
        "",
    ],
)
def test_nobody_knows_whether_a_repository_has_the_digest_of_another_one(image_id: str) -> None:
    assert by_digest("registry.example/team/mine:main", image_id) is None


def test_what_was_loaded_into_a_node_has_no_repository() -> None:
    said = (DIGEST, f"docker://{DIGEST}", f"docker.io/library/import-2026-11-29@{DIGEST}")
    assert all(map(brought_by_hand, said))
    assert not brought_by_hand(f"registry.example/mine@{DIGEST}")
    # So says CRI-O of any, in some of its versions.
    assert not brought_by_hand("597ce1600cf4ac")
    assert not brought_by_hand(f"registry.example/import-2026-11@{DIGEST}")

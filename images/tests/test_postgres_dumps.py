"""What the entrypoint of Postgres leaves out of a dump: the key of pg_dump, and no more."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ENTRYPOINT = Path(__file__).parents[1] / "postgres" / "entrypoint.sh"
WORD = "OD4zUQbeXo7wGRoWkHBhSHVqVsrwaWQU6cVwqz0pHOAVqPq4pWTPIkXXXm9kQzq"
DUMP = f"""\
--
-- PostgreSQL database dump
--

\\restrict {WORD}

-- Dumped from database version 17.6

SET statement_timeout = 0;

COPY public.note (text) FROM stdin;
\\\\restrict {WORD}
\\N
\\.

--
-- PostgreSQL database dump complete
--

\\unrestrict {WORD}

"""


def read(file: Path) -> tuple[int, str, str]:
    """Return how the reading of a file ends, what psql is given of it, and what is said of it."""
    function = re.search(r"^without_own_key\(\) \{\n.*?^\}\n", ENTRYPOINT.read_text(), re.M | re.S)
    assert function is not None
    script = f'{function.group()}without_own_key "$1"'
    command = ["sh", "-c", script, "sh", str(file)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def loaded(text: str, folder: Path) -> tuple[int, str, str]:
    """Return the same of a text."""
    file = folder / "dump.sql"
    file.write_bytes(text.encode())
    return read(file)


def own(dump: str) -> str:
    """Return a dump with empty lines where its key was."""
    return re.sub(rf"^\\(?:un)?restrict {WORD}\r?$", "", dump, flags=re.M)


@pytest.mark.parametrize(
    "dump",
    [DUMP, DUMP + DUMP, f"{DUMP}SELECT 1;\n", DUMP.replace("\n", "\r\n")],
    ids=["one", "two", "more after it", "of Windows"],
)
def test_the_key_of_a_dump_is_left_out_and_its_lines_stay_where_they_are(
    tmp_path: Path, dump: str
) -> None:
    code, given, said = loaded(dump, tmp_path)
    assert (code, given, said) == (0, own(dump), "")
    assert "\n\\\\restrict " in given


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (n int);\n",
        f"SELECT 1;\n{DUMP}",
        f"SELECT '\n\\restrict {WORD}\n';\n",
        "\\restrict two words\nSELECT 1;\n",
        f"\\restrict {WORD};\n\\! id\n",
        "\\! id\n",
        f"\\unrestrict {WORD}\n\\! id\n",
    ],
)
def test_what_is_no_dump_is_what_it_was(tmp_path: Path, text: str) -> None:
    assert loaded(text, tmp_path) == (0, text, "")


@pytest.mark.parametrize("command", ["\\! id", "\\restrict other", "\\unrestrict other", "\\q"])
def test_other_commands_in_a_dump_are_left_for_psql_to_refuse(tmp_path: Path, command: str) -> None:
    for place in ("SET statement_timeout = 0;\n", f"\\unrestrict {WORD}\n"):
        dump = DUMP.replace(place, f"{place}{command}\n")
        code, given, _ = loaded(dump, tmp_path)
        if command.startswith("\\restrict") and place.startswith("\\"):
            # A second dump, which is cut off.
            assert code == 1
        else:
            assert f"\n{command}\n" in given


def test_a_dump_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    code, _, said = loaded(DUMP.partition("--\n-- PostgreSQL database dump complete")[0], tmp_path)
    assert code == 1
    assert "the dump is cut off" in said


def test_a_file_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    code, _, _ = read(tmp_path / "nothing.sql")
    assert code != 0

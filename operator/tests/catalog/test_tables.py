"""Tables of feeders are read as the generator reads them, or refused with what to write."""

from __future__ import annotations

import pytest

from laptime.api.feeders import Csv, Feeder
from laptime.catalog.feeding import first_values, rows_of
from laptime.catalog.tables import csv_text, table_of


def test_a_table_has_columns_and_rows() -> None:
    table = table_of(Csv(text='\ufeffid, name\r\n1,"a, ""b""\r\nc"\r\n\r\n2,\n'))
    assert table.columns == ("id", "name")
    assert table.rows == (("1", 'a, "b"\nc'), ("2", ""))
    assert table.column("name") == ['a, "b"\nc', ""]


def test_the_generator_gets_what_was_understood() -> None:
    assert csv_text(Csv(text="\ufeffa\r\n1\r\n")) == "a\n1\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n\n", "it is empty: write the names of the columns in its first line"),
        ("a,b\n", "no row follows the names of the columns"),
        ("a,a\n1,2", "column 2 has no name of its own: write different names"),
        ("a,1b\n1,2", "column 2 has no name"),
        ("a,b c\n1,2", "column 2 has no name"),
        ("a,\n1,2", "column 2 has no name"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cell, the first line has 2"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells"),
        ('a\n"x\n', "line 2 is no CSV: write a cell with a quotation mark in quotation marks"),
        ('a\nx"y\n', "line 2 is no CSV"),
        ('a\n"x"y\n', "line 2 is no CSV"),
        ('a,b\n"x\ny",1\nz"\n', "line 4 is no CSV"),
    ],
)
def test_what_is_no_table_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match="write") as refused:
        table_of(Csv(text=text))
    assert says in str(refused.value)


@pytest.mark.parametrize("text", ["ada,S3cr3t!\n", "a,b\nada,S3cr3t!,x\n", 'a,b\nada,S3cr3t"\n'])
def test_what_is_no_table_is_refused_without_what_is_in_it(text: str) -> None:
    """The first line may be a row, where nobody has written the names."""
    with pytest.raises(ValueError, match="write") as refused:
        table_of(Csv(text=text))
    assert "S3cr3t" not in str(refused.value)


def test_a_table_of_ten_thousand_rows_fits() -> None:
    text = "name,password\n" + "".join(f"user{n},secret-of-{n:08}\n" for n in range(10_000))
    feeder = Feeder.model_validate({"name": "users", "csv": {"text": text}})
    assert rows_of(feeder) == 10_000
    assert first_values([feeder]) == {
        "users.name": "user0",
        "users.password": "secret-of-00000000",
    }

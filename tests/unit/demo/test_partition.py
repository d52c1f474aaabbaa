from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from urllib.parse import unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.demo.partition import directory_of, log_path, partition_text
from tests.cases import each_case

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@each_case(
    ("value", "text"),
    [
        (None, None),
        ("as it is", "as it is"),
        ("", ""),
        (7, "7"),
        (True, "true"),
        (False, "false"),
        (0.5, "0.5"),
        (Decimal("1.50"), "1.50"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), "2024-02-29 12:00:00"),
        (datetime(2024, 2, 29, 12, 0, 0, 120_000, tzinfo=UTC), "2024-02-29 12:00:00.12"),
        (datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=2))), "2024-02-29 10:00:00"),
    ],
)
def test_a_value_is_spelled_as_the_protocol_has_it(value, text):
    assert partition_text(value) == text


@each_case(
    ("value", "name"),
    [
        ("plain", "p=plain"),
        ("two words", "p=two words"),
        ("a/b", "p=a%2Fb"),
        ("a=b", "p=a%3Db"),
        ("100%", "p=100%25"),
        ("a\\b:c", "p=a%5Cb%3Ac"),
        ("\"#'*?{[]^", "p=%22%23%27%2A%3F%7B%5B%5D%5E"),
        ("\x1f\x7f", "p=%1F%7F"),
        ("Grüße+&}", "p=Grüße+&}"),
        (None, "p=__HIVE_DEFAULT_PARTITION__"),
        ("", "p=__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_a_directory_is_named_as_hive_names_it(value, name):
    assert directory_of({"p": value}) == name


def test_directories_are_nested_in_the_order_of_the_columns():
    assert directory_of({"day": "1", "a=b": "2"}) == "day=1/a%3Db=2"
    assert directory_of({}) == ""


@each_case(
    ("key", "path"),
    [
        ("p=plain/f.parquet", "p=plain/f.parquet"),
        ("p=two words/f", "p=two%20words/f"),
        ("p=a%2Fb/f", "p=a%252Fb/f"),
        ("p=Grüße/東京", "p=Grüße/東京"),
        ("a\u2028b\u00a0c", "a%E2%80%A8b%C2%A0c"),
        ("a&b;c,d+e@$!~'()*", "a&b;c,d+e@$!~'()*"),
        ("<>|`{}", "%3C%3E%7C%60%7B%7D"),
    ],
)
def test_a_path_in_the_log_is_a_uri_as_java_writes_it(key, path):
    assert log_path(key) == path


@settings(deadline=None)
@given(_TEXT)
def test_the_path_in_the_log_leads_back_to_the_name_on_disk(value):
    directory = directory_of({"p": value})

    assert "/" not in directory
    assert unquote(log_path(directory)) == directory
    assert unquote(directory) == f"p={value}"
